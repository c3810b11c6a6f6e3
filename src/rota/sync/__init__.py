"""The waits and barriers that make a program safe: takes entries, gives them with every change listed."""
