"""fetch(): files from elsewhere, once."""
import os
from typing import Any

from weft import _core

__all__ = ["fetch"]


def _download_folder(subdir: str | None) -> Any:
    import pathlib
    base = _core.option("CACHE_DIR")
    root = pathlib.Path(base) if base else pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weft"
    return root / "downloads" / (subdir or "")


def fetch(url: str, name: Any = None, subdir: str | None = None, gunzip: bool = False, allow_caching: bool = True,
          headers: dict[str, str] | None = None, sha256: str | None = None, extract: bool = False) -> Any:
    """The path of a downloaded file, or of the folder that an archive (tar) was unpacked into; downloaded once. A
    path is itself. With sha256, a RuntimeError where the contents have another one."""
    import hashlib
    import pathlib
    if url.startswith(("/", ".")):
        return pathlib.Path(url)
    if name is not None and "/" in str(name):
        target = pathlib.Path(name)
    else:
        digest = hashlib.sha256(url.encode()).hexdigest()[:32]
        target = _download_folder(subdir) / (name or digest + ("-gunzip" if gunzip else ""))
    stale = not target.is_file() or not allow_caching or (sha256 is not None and _sha256(target) != sha256)
    if stale:
        _download(url, target, gunzip, headers or {}, sha256)
    return _unpacked(target, stale) if extract else target


def _sha256(path: Any) -> str:
    import hashlib
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpacked(archive: Any, stale: bool) -> Any:
    """The folder beside an archive with what is in it; names that lead out of it are an error of tarfile's."""
    import shutil
    import tarfile
    import tempfile
    folder = archive.with_name(archive.name + ".extract")
    if stale:
        shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir():
        return folder
    part = tempfile.mkdtemp(dir=archive.parent)
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(part, filter="data")
        os.rename(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return folder


def _download(url: str, target: Any, gunzip: bool, headers: dict, sha256: str | None) -> None:
    import gzip
    import shutil
    import tempfile
    import urllib.request
    target.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "weft", **headers})
    with urllib.request.urlopen(request, timeout=30) as response:
        content = gzip.GzipFile(fileobj=response) if gunzip else response
        # Renamed only when whole: an interrupted download leaves nothing behind that looks complete.
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
            try:
                shutil.copyfileobj(content, part)
                part.close()
                missing = getattr(response, "length", None)  # of HTTP: what Content-Length said
                if not gunzip and missing:
                    raise RuntimeError(f"{url} ended {missing} bytes early")
                if sha256 and (found := _sha256(part.name)) != sha256:
                    raise RuntimeError(f"the SHA-256 of {url} is {found}, not {sha256}")
                os.replace(part.name, target)
            except BaseException:
                os.unlink(part.name)
                raise
