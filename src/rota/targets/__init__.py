"""What the hardware is: takes a device's name and knobs, gives costs per op and the pipeline shape it favours."""
