"""What the fake's world is called: hosts, the subscription, the workspace, the registry, ids of resources."""

from allranks_client.routing import API, MANAGEMENT, REGISTRY_HOST

SUBSCRIPTION = "12345678-1234-1234-1234-123456789abc"
TENANT = "87654321-4321-4321-4321-cba987654321"
GROUP = "rg"
WORKSPACE = "lab"
REGISTRY = "reg"
LOCATION = "eastus"
ACCOUNT = "wsstorage"

BLOBS = f"{ACCOUNT}.blob.core.windows.net"
HOSTS = (MANAGEMENT, API, REGISTRY_HOST, BLOBS)
"""The hosts that the fake answers for."""

GROUP_PATH = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
PROVIDER_PATH = f"{GROUP_PATH}/providers/Microsoft.MachineLearningServices"
WORKSPACE_PATH = f"{PROVIDER_PATH}/workspaces/{WORKSPACE}"
REGISTRY_PATH = f"{PROVIDER_PATH}/registries/{REGISTRY}"

ARM, AML, STORAGE = "https://management.azure.com", "https://ml.azure.com", "https://storage.azure.com"
"""The audiences of tokens: Resource Manager, Azure ML, storage."""

AUDIENCES = {MANAGEMENT: (ARM,), API: (AML, ARM), REGISTRY_HOST: (AML, ARM)}
"""The audiences that a host accepts."""

STUDIO = "https://ml.azure.com"
