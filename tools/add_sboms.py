"""Add a software bill of materials to wheels, in CycloneDX 1.7, as `.dist-info/sboms/NAME.cdx.json` (PEP 770).

usage: python tools/add_sboms.py WHEEL...

A wheel of this project contains no code of others. Its bill lists what it requires, with the ranges of versions.
"""

import base64
import hashlib
import json
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

RECORD = "/RECORD"


def bill(metadata: Message) -> dict[str, Any]:
    """Return the bill of a distribution. What only an extra requires is optional."""
    name, version = canonicalize_name(metadata["Name"]), metadata["Version"]
    required: dict[tuple[str, str], str] = {}
    for text in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(text)
        dependency = canonicalize_name(requirement.name)
        scope = "optional" if requirement.marker and "extra" in str(requirement.marker) else "required"
        if dependency != name and required.get(key := (dependency, _range(requirement))) != "required":
            required[key] = scope
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": name,
                "name": name,
                "version": version,
                "licenses": [{"expression": metadata["License-Expression"]}],
                "purl": f"pkg:pypi/{name}@{version}",
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": f"{dependency} {versions}",
                "name": dependency,
                "versionRange": versions,
                "isExternal": True,
                "scope": scope,
                "purl": f"pkg:pypi/{dependency}",
            }
            for (dependency, versions), scope in sorted(required.items())
        ],
        "dependencies": [{"ref": name, "dependsOn": [" ".join(key) for key in sorted(required)]}],
    }


def _range(requirement: Requirement) -> str:
    """Return the versions that a requirement allows, as a range of the format `vers`."""
    bounds = sorted(requirement.specifier, key=lambda bound: Version(bound.version))
    return f"vers:pypi/{'|'.join(str(bound).removeprefix('==') for bound in bounds) or '*'}"


def add(wheel: Path) -> None:
    """Replace a wheel by one with its bill, which RECORD lists."""
    with zipfile.ZipFile(wheel) as archive:
        files = {info: archive.read(info) for info in archive.infolist()}
    (record,) = (info for info in files if info.filename.endswith(f".dist-info{RECORD}"))
    folder = record.filename.removesuffix(RECORD)
    metadata = next(data for info, data in files.items() if info.filename == f"{folder}/METADATA")
    bill_data = json.dumps(bill(message_from_bytes(metadata)), indent=1).encode()
    info = zipfile.ZipInfo(f"{folder}/sboms/{folder.partition('-')[0]}.cdx.json", record.date_time)
    info.compress_type, info.external_attr = record.compress_type, record.external_attr
    digest = base64.urlsafe_b64encode(hashlib.sha256(bill_data).digest()).rstrip(b"=").decode()
    listed = files.pop(record) + f"{info.filename},sha256={digest},{len(bill_data)}\n".encode()
    made = wheel.with_suffix(".part")
    with zipfile.ZipFile(made, "w") as archive:
        for each, data in {**files, info: bill_data, record: listed}.items():
            archive.writestr(each, data)
    made.replace(wheel)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        add(Path(name))
