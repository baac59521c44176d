# The stages that the images on Ubuntu with Open MPI begin with. When allranks uploads or builds an environment, this
# text replaces the line of its Dockerfile that includes it.
# allranks: include images.Dockerfile
# DEVICE: cuda or cpu. OFED: doca (NVIDIA's user space of OFED) or distribution (rdma-core of Debian or Ubuntu).
ARG DEVICE=cuda
ARG OFED=doca
# doca-host for Ubuntu 24.04, as Azure's own images of 2026-07 have it (Azure/azhpc-images, versions.json at 8e9d055).
ARG DOCA_VERSION=3.2.3
ARG DOCA_BUILD=019000
ARG DOCA_SHA256=762a3dbc1c8c1e4b03867b022ccafcfafa95bffe461a58a5b6e38fc678263614
ARG OFED_VERSION=25.10
# Mellanox/nccl-rdma-sharp-plugins, its master of 2026-04-03: Azure's images build the master too.
ARG SHARP_PLUGINS_COMMIT=2f5ac02e164336044388b7f1f6242cc0db575fec
# Azure/azhpc-images, its main of 2026-07-29: what NCCL is told of the sizes' PCI trees (MIT license).
ARG TOPOLOGY_COMMIT=8e9d055fb9e1f7385da734969793861c447958a1

FROM ${BASE_IMAGE} AS system
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ca-certificates curl git libgomp1 openssh-client openssh-server python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

FROM system AS ofed-distribution
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ibverbs-providers ibverbs-utils infiniband-diags libibverbs1 librdmacm1 perftest rdmacm-utils \
    && rm -rf /var/lib/apt/lists/*

# The kernel's driver and the firmware are the host's. This package is OFED without them: what the older installer did
# with --user-space-only --without-fw-update.
FROM system AS ofed-doca
ARG DEBIAN_FRONTEND=noninteractive
ARG DOCA_VERSION
ARG DOCA_BUILD
ARG DOCA_SHA256
ARG OFED_VERSION
RUN file="doca-host_${DOCA_VERSION}-${DOCA_BUILD}-${OFED_VERSION}-ubuntu2404_amd64.deb" \
    && curl --fail --silent --show-error --location --output /tmp/doca-host.deb \
        "https://www.mellanox.com/downloads/DOCA/DOCA_v${DOCA_VERSION}/host/${file}" \
    && printf '%s  /tmp/doca-host.deb\n' "${DOCA_SHA256}" > /tmp/doca-host.sha256 \
    && sha256sum --check /tmp/doca-host.sha256 \
    && dpkg --install /tmp/doca-host.deb \
    && apt-get update \
    && apt-get install --yes --no-install-recommends doca-ofed-userspace \
    && apt-get purge --yes doca-host \
    && rm -rf /tmp/doca-host.* /var/lib/apt/lists/*

FROM ofed-${OFED} AS ofed

FROM ${DEVEL_IMAGE} AS devel

# NCCL's plugin for SHARP needs the libraries of OFED, and CUDA's headers; other images get an empty folder.
FROM ofed AS sharp-cuda-doca
ARG DEBIAN_FRONTEND=noninteractive
ARG SHARP_PLUGINS_COMMIT
COPY --from=devel /usr/local/cuda/ /usr/local/cuda/
RUN apt-get update \
    && apt-get install --yes --no-install-recommends autoconf automake g++ libtool make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /tmp/plugins
RUN git init --quiet . \
    && git fetch --quiet --depth 1 https://github.com/Mellanox/nccl-rdma-sharp-plugins.git "${SHARP_PLUGINS_COMMIT}" \
    && git checkout --quiet FETCH_HEAD \
    && ./autogen.sh \
    && ./configure --prefix=/opt/nccl-plugins --with-cuda=/usr/local/cuda --with-sharp=/opt/mellanox/sharp \
    && make \
    && make install

FROM system AS sharp-none
RUN mkdir -p /opt/nccl-plugins/lib

FROM sharp-none AS sharp-cuda-distribution
FROM sharp-none AS sharp-cpu-doca
FROM sharp-none AS sharp-cpu-distribution
FROM sharp-${DEVICE}-${OFED} AS sharp

# A container does not see the files of Azure's host image. The runtime names the one of its instance's size to NCCL.
FROM system AS topology-cuda
ARG TOPOLOGY_COMMIT
WORKDIR /opt/microsoft
RUN for file in ncv4-graph.xml ncv4-topo.xml ndv2-topo.xml ndv4-topo.xml ndv5-topo.xml; do \
        curl --fail --silent --show-error --location --remote-name \
            "https://raw.githubusercontent.com/Azure/azhpc-images/${TOPOLOGY_COMMIT}/topology/${file}" || exit 1; \
    done \
    && printf '%s  %s\n' \
        cb224b1c96d1a35dbe4042f8ef050cd13142916a166fba8223eeefefa99239a5 ncv4-graph.xml \
        54df45da525ea730f90cda3157d01c5f31e73e2ba26c76e3dd709cb7bc72dcb5 ncv4-topo.xml \
        996e81e764c1d42291c38d21a3ae8f74381aa67714ec80b3dcbb776ff40ce16a ndv2-topo.xml \
        c3583efb0b6e53f52410e32643b46bb6af99f5f34dcebc1868c47c233f84d2cf ndv4-topo.xml \
        c26ff47f1decf03d44ee6e90c4a8afd3bddeec334c5545008f33af2a297e2834 ndv5-topo.xml > /tmp/topology.sha256 \
    && sha256sum --check /tmp/topology.sha256

FROM system AS topology-cpu
RUN mkdir -p /opt/microsoft

FROM topology-${DEVICE} AS topology

FROM ofed AS base
ARG DEBIAN_FRONTEND=noninteractive
ARG DEVICE
ARG OFED
COPY --from=sharp /opt/nccl-plugins/ /opt/nccl-plugins/
COPY --from=topology /opt/microsoft/ /opt/microsoft/
# Containers of jobs run as root, and Open MPI asks twice whether that is meant.
ENV PATH=/opt/python/bin:$PATH \
    OMPI_ALLOW_RUN_AS_ROOT=1 \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    ALLRANKS_DEVICE=${DEVICE} \
    ALLRANKS_OFED=${OFED}
# Azure ML starts `mpirun` by its name, and mpirun its daemon by ssh, where no variable of this file is set. So it is the
# distribution's Open MPI 4.1, in /usr/bin, which is built with UCX. Open MPI 5 ignores the hosts that Azure ML passes.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openmpi-bin \
    && rm -rf /var/lib/apt/lists/* \
    && echo /opt/nccl-plugins/lib > /etc/ld.so.conf.d/nccl-plugins.conf \
    && ldconfig \
    && python3 -m venv /opt/python
# No key is in the image: the instance makes its host key, and who starts a cluster brings the users' keys.
COPY setup_mpi.sh /opt/
RUN /opt/setup_mpi.sh "PATH=$PATH"
