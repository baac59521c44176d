# The images to start from. DEVEL_IMAGE is needed only to compile for GPUs. CUDA 13 is for Blackwell (GB200, GB300). It needs
# driver 580, and has no V100.
ARG BASE_IMAGE=nvidia/cuda:13.0.2-base-ubuntu24.04
ARG DEVEL_IMAGE=nvidia/cuda:13.0.2-devel-ubuntu24.04
# The GPUs that DeepSpeed and Horovod are compiled for.
ARG TORCH_CUDA_ARCH_LIST=7.5;8.0;9.0;10.0
ARG HOROVOD_BUILD_CUDA_CC_LIST=75,80,90,100
