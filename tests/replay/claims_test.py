"""tools/replay --claims: commits that say they change no code are held to it."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPLAY = Path(__file__).resolve().parents[2] / "tools/replay"
ENVIRONMENT = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", GIT_AUTHOR_NAME="a",
                   GIT_AUTHOR_EMAIL="a@b.c", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b.c")


def git(folder, *words):
    subprocess.run(["git", *words], cwd=folder, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)


def commit(folder, code, message):
    (folder / "code").write_text(code)
    git(folder, "add", "code")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def claims(folder):
    """Exit code and what is printed, with the file `code` in the place of what a commit compiles."""
    done = subprocess.run([sys.executable, str(REPLAY), "--claims", "--manifest", "cat code"], cwd=folder,
                          env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def expect(got, code, *texts):
    assert got[0] == code, got
    for text in texts:
        assert text in got[1], got


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        git(folder, "init", "-q")
        commit(folder, "x86:sum 1\nx86:rows 2\n", "begin")
        commit(folder, "x86:sum 3\nx86:rows 2\n", "a change that claims nothing")
        assert claims(folder) == (0, "")
        commit(folder, "x86:sum 3\nx86:rows 2\n", "renamed\n\nGenerated-code: unchanged\n")
        expect(claims(folder), 0, "2 kernels, no lines of them different")
        commit(folder, "x86:sum 4\nx86:rows 2\n", "only renamed\n\nGenerated-code: unchanged\n")
        expect(claims(folder), 1, "2 lines of them different", "-x86:sum 3", "+x86:sum 4")
        commit(folder, "", "all of it is gone\n\nGenerated-code: unchanged\n")
        expect(claims(folder), 1, "compiles no kernel, which shows nothing")
        commit(folder, "", "a word\n\nGenerated-code: the same\n")
        expect(claims(folder), 1, "'Generated-code: the same' means nothing")
        assert len(subprocess.run(["git", "worktree", "list"], cwd=folder, env=ENVIRONMENT, check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.splitlines()) == 1


if __name__ == "__main__":
    main()
