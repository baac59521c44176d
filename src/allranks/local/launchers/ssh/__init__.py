"""How mpirun reaches an instance with --mpi ssh: a real sshd on each instance, configured as in the images."""
