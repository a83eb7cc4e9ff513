"""Commands on a file system of a test's own: one that is full soon, or cannot be written."""


def on_own_file_system(case, launch, mount, script, folder, *arguments):
    """What `launch(*command)` gives for `sh -c script`, with `folder`, which it makes, as $1 and `arguments` as $2 and on: a tmpfs is
    mounted there, `mount` are its options. Where nobody may mount anything the test is left out."""
    folder.mkdir()
    script = f'mount -t tmpfs {mount} none "$1" || exit 77; {script}'
    done = launch("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", folder, *arguments)
    if done.returncode == 77 or "unshare" in done.stderr:
        case.skipTest(f"no file system of a test's own can be mounted here: {done.stderr.strip()}")
    return done
