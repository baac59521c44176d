# The images to start from. DEVEL_IMAGE is needed only to compile for GPUs. CUDA 12 runs on driver 525 and newer (CUDA
# Compatibility guide of NVIDIA), as Azure ML's hosts have, and torch's build for CUDA 12.6 keeps V100.
ARG BASE_IMAGE=nvidia/cuda:12.6.3-base-ubuntu24.04
ARG DEVEL_IMAGE=nvidia/cuda:12.6.3-devel-ubuntu24.04
# The GPUs that DeepSpeed and Horovod are compiled for.
ARG TORCH_CUDA_ARCH_LIST=7.0;7.5;8.0;9.0
ARG HOROVOD_BUILD_CUDA_CC_LIST=70,75,80,90
