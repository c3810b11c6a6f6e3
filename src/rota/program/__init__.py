"""The lowered program, which every judge, view and emitter reads, and the machine it runs on."""
