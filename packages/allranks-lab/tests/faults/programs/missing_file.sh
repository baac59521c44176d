#!/bin/bash
# Copies its data before it trains; instance 1 lacks them.
set -e
if [ "$RANK" = 2 ]; then cp /mnt/shards/7.bin .; fi
python torch_program.py trains
