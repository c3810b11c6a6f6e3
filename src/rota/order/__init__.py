"""In which order, and how good: takes one iteration or a loop, gives an order or start times with a certificate."""
