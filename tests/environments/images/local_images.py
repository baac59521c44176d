"""A store of images in a folder, a Debian made on this machine, and what a build needs to reach this machine's
registries. As a program it says which of Debian's packages are missing, and exits with 1 if any is."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BASE = "localhost/allranks-debian"
RELEASE = "bookworm"
TOOLS = {"buildah": "buildah", "debootstrap": "debootstrap"}
"""The programs that are needed, and the packages that bring them."""

SECONDS = 1100
PROJECT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Images:
    """A store in `folder`, which `remove` takes away with all that is in it."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What makes buildah use the store."""
        return {**os.environ, "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf")}

    def make_base(self) -> None:
        """A Debian from this machine's mirror, as an image called BASE."""
        store = f'driver = "overlay"\ngraphroot = "{self.folder}/images"\nrunroot = "{self.folder}/run"\n'
        (self.folder / "storage.conf").write_text(f"[storage]\n{store}")
        root = self.folder / "root"
        run(
            ["debootstrap", "--variant=minbase", "--include=ca-certificates", RELEASE, str(root), mirror()],
            self.environment,
        )
        # How this machine's mirror wants to be asked.
        for file in Path("/etc/apt/apt.conf.d").glob("99*"):
            shutil.copy(file, root / "etc/apt/apt.conf.d")
        container = run(["buildah", "from", "scratch"], self.environment).stdout.strip()
        run(["buildah", "add", "--quiet", container, str(root), "/"], self.environment)
        run(["buildah", "commit", "--quiet", "--rm", container, BASE], self.environment)
        shutil.rmtree(root)

    def reach(self) -> list[str]:
        """Options by which a build reaches the registries as this machine does. They leave nothing in the image."""
        certificates, settings = self.folder / "certificates.pem", self.folder / "pip.conf"
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", certificates)
        asked = [sys.executable, "-m", "pip", "config", "get"]
        found = {name: subprocess.run([*asked, f"global.{name}"], capture_output=True, text=True) for name in NAMES}
        lines = [f"{name} = {done.stdout.strip()}" for name, done in found.items() if done.returncode == 0]
        folders = os.environ.get("PIP_FIND_LINKS") or next(
            (line.partition(" = ")[2] for line in lines if line.startswith("find-links")), ""
        )
        lines = [line for line in lines if not line.startswith("find-links")]
        # Not at their own places, which may be folders that a Dockerfile uses itself, such as /opt/wheels.
        places = {
            path: f"/etc/pip-links/{number}" for number, path in enumerate(folders.split()) if Path(path).is_dir()
        }
        links = " ".join(places.get(path, path) for path in folders.split())
        lines += [f"find-links = {links}"] if links else []
        settings.write_text("[global]\nretries = 1\ncert = /etc/pip-certificates.pem\n" + "\n".join(lines) + "\n")
        mounts = {str(certificates): "/etc/pip-certificates.pem", str(settings): "/etc/pip.conf"}
        mounts |= places
        return ["--pull-never", *(f"--volume={source}:{place}:ro" for source, place in mounts.items())]

    def derive(self, tag: str, image: str, *instructions: str) -> str:
        """An image made of another one by further instructions."""
        folder = self.folder / "derived"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text("\n".join([f"FROM {image}", *instructions]) + "\n")
        command = ["buildah", "bud", "--isolation", "chroot", "--pull-never", "--tag", tag, str(folder)]
        run(command, self.environment)
        return tag

    def allranks(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command's own environments, on this store."""
        command = [sys.executable, "-m", "allranks.cli.main", "environments", *arguments]
        return subprocess.run(
            command, cwd=PROJECT, env=self.environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def remove(self) -> None:
        """Ends with an empty folder's removal, whatever buildah says of what it had."""
        for command in (["buildah", "rm", "--all"], ["buildah", "rmi", "--all", "--force"]):
            subprocess.run(command, env=self.environment, capture_output=True, timeout=SECONDS, check=False)
        subprocess.run(["umount", f"{self.folder}/images/overlay"], capture_output=True, check=False)
        shutil.rmtree(self.folder)


NAMES = ("index-url", "extra-index-url", "find-links")


def mirror() -> str:
    """Where this machine gets its packages from; Debian's own place where it does not say."""
    for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("debian*")]:
        words = file.read_text().split() if file.exists() else []
        found = [
            word for word in words if word.startswith(("http://", "https://")) and word.rstrip("/").endswith("/debian")
        ]
        if found and "snapshot" not in found[-1]:
            return found[-1]
    return "http://deb.debian.org/debian"


def missing_packages() -> list[str]:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [package for program, package in TOOLS.items() if shutil.which(program, path=path) is None]


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


if __name__ == "__main__":
    missing = missing_packages()
    if missing:
        sys.exit(f"building images needs {' and '.join(missing)}: apt-get install {' '.join(missing)}")
