#!/bin/bash
# Reports the end of its training, which SIGKILL ends on rank 2.
python torch_program.py handled_exception_and_sigkill
code=$?
echo "the training has ended with $code"
exit $code
