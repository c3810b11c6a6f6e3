"""When the ops of a pipelined loop start: takes a `ModuloProblem`, gives a `ModuloSchedule` with a certificate."""
