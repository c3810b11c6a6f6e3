"""What rota costs: takes recorded or generated loops, prints how long each step needs."""
