"""Wait states between instructions: what the device requires, on paper and while a kernel runs."""
