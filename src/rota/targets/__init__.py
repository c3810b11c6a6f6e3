"""What the hardware is: takes a device's name, gives one object with all that is known about it, with sources."""
