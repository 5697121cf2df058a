#!/usr/bin/env python3
"""What the controller says, and does, when what it needs is wrong or missing: its access, its
rights, its definitions, parts of jobs. `bad_input_test.py RENZAN`; exits with 77 where there is no
control plane."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube import ApiError, wait_until  # noqa: E402
from proxy import Proxy  # noqa: E402
from world import GANG_JOBS, expect, testing  # noqa: E402


def says(world, kubeconfig, pattern, code=0):
    """A replica that cannot work must say so, and end with `code`: by itself, or (0) when told
    to."""
    log = pathlib.Path(f"{world.run}/cannot-work.log")
    with open(log, "w") as out:
        process = subprocess.Popen(
            [world.program, "cluster", "kubernetes", "run"], stdout=out, stderr=out,
            env=os.environ | {"KUBECONFIG": kubeconfig, "POD_NAME": "bad"})
    try:
        wait_until(lambda: re.search(pattern, log.read_text()), f"it says {pattern}")
    except TimeoutError as error:
        sys.exit(f"FAILED: {error}, but: {log.read_text()}")
    finally:
        if code == 0:
            process.terminate()
        ended_with = process.wait()
    expect(ended_with == code, f"after {pattern} it ended with {ended_with}, not {code}")


def changed(world, name, edit):
    config = json.loads(pathlib.Path(world.controller_config).read_text())
    edit(config)
    path = f"{world.run}/kubeconfig-{name}"
    pathlib.Path(path).write_text(json.dumps(config))
    return path


def bad_access_is_said(world):
    path = changed(world, "nobody", lambda config: config["clusters"][0]["cluster"].update(
        server="https://127.0.0.1:9"))
    says(world, path, "127.0.0.1:9")
    path = changed(world, "bad-token", lambda config: config["users"][0]["user"].update(
        token="wrong"))
    says(world, path, "401|Unauthorized")
    says(world, f"{world.run}/no-such-file", "no-such-file", code=66)


def an_account_without_rights_is_told_which(world):
    path = f"{world.run}/kubeconfig-without-rights"
    world.become("default", path)
    says(world, path, "403 Forbidden: .*renzan-system:default.* cannot get resource .leases.*: "
                      "grant this right to the user of .*kubeconfig-without-rights")


def an_expired_certificate_is_said(world):
    path = pathlib.Path(f"{world.run}/expired.pem")
    for command in (
            "openssl req -new -config certs/openssl.cnf -subj /CN=expired -nodes -newkey ec "
            "-pkeyopt ec_paramgen_curve:prime256v1 -keyout expired.key -out expired.csr",
            "openssl x509 -req -in expired.csr -CA certs/ca.crt -CAkey certs/ca.key -days -1 "
            "-extfile expired.ext -out expired.crt"):
        pathlib.Path(f"{world.run}/expired.ext").write_text("subjectAltName=IP:127.0.0.1\n")
        done = subprocess.run(command.split(), cwd=world.run, capture_output=True, text=True)
        expect(done.returncode == 0, done.stderr)
    path.write_text("".join(pathlib.Path(f"{world.run}/expired.{kind}").read_text()
                            for kind in ("crt", "key")))
    config = Proxy(world, "expired", certificate=path).config
    says(world, config, "certificate has expired.*: have it renewed on the server")
    done = subprocess.run([world.program, "jobs"], capture_output=True, text=True,
                          env=os.environ | {"KUBECONFIG": config, "HOME": str(world.run)})
    expect(done.returncode == 78 and len(done.stderr.splitlines()) == 1
           and "certificate has expired" in done.stderr, f"`renzan jobs` says {done}")


def a_job_without_its_image_volume_or_label_says_so(world):
    world.client.post(GANG_JOBS, {
        "apiVersion": "renzan.dev/v1alpha1", "kind": "GangJob", "metadata": {"name": "label"},
        "spec": {"template": {"spec": {"nodeSelector": {"gpu-type": "new"}, "containers": [
            {"name": "main", "image": "trainer"}]}}}})
    message = world.wait_for_message("label")
    expect("gpu-type" in message, message)
    world.client.delete(f"{GANG_JOBS}/label")
    world.submit("bad-pod", replicas=1, gpus=1, run_seconds=1)
    world.client.post(GANG_JOBS, {
        "apiVersion": "renzan.dev/v1alpha1", "kind": "GangJob", "metadata": {"name": "mount"},
        "spec": {"template": {"spec": {"containers": [
            {"name": "main", "image": "trainer",
             "volumeMounts": [{"name": "nowhere", "mountPath": "/data"}]}]}}}})
    message = world.wait_for_message("mount", "nowhere")
    print(f"a volume that is not there: {message}")
    world.wait_for("bad-pod", "done")
    world.client.delete(f"{GANG_JOBS}/mount")


def is_served(world):
    try:
        world.client.get(GANG_JOBS)
    except ApiError as error:
        expect(error.status == 404, str(error))
        return False
    return True


def a_definition_of_another_version_is_named(world):
    """As a later release of Renzan might install it."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gangjobs.renzan.dev"
    ours = world.client.get(path)["spec"]["versions"][0]
    # What is stored keeps the version that stores it.
    world.client.patch(path, {"spec": {"versions": [
        {**ours, "served": False}, {**ours, "name": "v1alpha2", "storage": False}]}})
    said = len(world.leading().said())
    leading = world.leading()
    line = "GET .*/apis/renzan.dev/v1alpha1/gangjobs: 404.*does the server have this kind?"
    wait_until(lambda: re.search(line, leading.said()[said:]), "the log names the version")
    time.sleep(3)  # during which it tries again
    found = re.findall(line, leading.said()[said:])
    expect(len(found) == 1, f"it is said {len(found)} times: {found}")
    world.client.patch(path, {"spec": {"versions": [ours]}})
    wait_until(lambda: is_served(world), "the server takes up the definition again")
    world.submit("of-this-version", replicas=1, gpus=1, run_seconds=1)
    world.wait_for("of-this-version", "done")


def a_definition_that_lacks_a_field_is_named(world):
    """As an earlier release of Renzan might have left it: the server drops fields it does not
    know."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gangjobs.renzan.dev"
    ours = world.client.get(path)["spec"]["versions"][0]
    theirs = json.loads(json.dumps(ours))
    del theirs["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["facts"]
    world.client.patch(path, {"spec": {"versions": [theirs]}})
    line = "definition of GangJobs is of another version: it drops status.facts, .*: apply deploy"
    jobs = 0

    def is_said():
        # The server adopts a definition after a moment.
        nonlocal jobs
        jobs += 1
        world.submit(f"fields-{jobs}", replicas=1, gpus=1, run_seconds=0.1)
        world.wait_for(f"fields-{jobs}", "done")
        return re.search(line, world.leading().said())

    wait_until(is_said, "the log names the field")
    world.client.patch(path, {"spec": {"versions": [ours]}})
    expect(len(re.findall(line, world.leading().said())) == 1, "it is said more than once")


def without_its_definition_it_waits_for_it(world):
    world.kubectl("delete", "crd", "queues.renzan.dev")
    for replica in world.replicas:
        replica.process.kill()
    wait_until(lambda: "queues" in "".join(
        replica.said() for replica in world.replicas),
        "a log names the definition that is missing")
    world.install()
    world.submit("defined", replicas=1, gpus=1, run_seconds=1)
    world.wait_for("defined", "done")


def main():
    with testing() as world:
        world.start_replicas(2)
        for scenario in (a_job_without_its_image_volume_or_label_says_so, bad_access_is_said,
                         an_account_without_rights_is_told_which, an_expired_certificate_is_said,
                         a_definition_of_another_version_is_named,
                         a_definition_that_lacks_a_field_is_named,
                         without_its_definition_it_waits_for_it):
            world.play(scenario, world)


if __name__ == "__main__":
    main()
