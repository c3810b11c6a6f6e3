"""The result: takes what a front end derived, gives one frozen value with its proof."""
