#!/usr/bin/env python3
"""The check of GangJobs at admission, on a real control plane: what is refused, what is warned of,
and that nothing depends on it. `admission_test.py RENZAN`; exits with 77 where there is no control
plane.

The API server of the testbed reaches no Service, so that the webhook is registered by its URL, with
a certificate of the testbed's authority."""

import base64
import json
import pathlib
import re
import socket
import ssl
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube import JSON_PATCH, ApiError, wait_until  # noqa: E402
from world import DEPLOY, GANG_JOBS, expect, kind, testing  # noqa: E402

WEBHOOK = ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
           "renzan-admission")


def job(name, run_seconds=600, gpus=1, **spec):
    return {**kind("GangJob"), "metadata": {"name": name},
            "spec": {"template": {
                "metadata": {"annotations": {"fake-nodes/run-seconds": str(run_seconds)}},
                "spec": {"containers": [{"name": "main", "image": "x", "resources": {
                    "limits": {"nvidia.com/gpu": str(gpus)}}}]}}} | spec}


def apply(world, item):
    return world.command("kubectl", "apply", "-f", "-", stdin=json.dumps(item))


def refused(world, item):
    """Applies the item, which must be refused. Returns the reason."""
    code, out = apply(world, item)
    expect(code == 1, f"{item['metadata']['name']} is not refused: {out}")
    found = re.search(r'admission webhook "gangjobs.renzan.dev" denied the request: (.*)', out)
    expect(found, f"refused by something else: {out}")
    return found[1]


def accepted(world, item):
    """Applies the item, which must be accepted. Returns the warnings."""
    code, out = apply(world, item)
    expect(code == 0, f"{item['metadata']['name']} is refused: {out}")
    return [line for line in out.splitlines() if line.startswith("Warning: ")]


def create_queue(world, name, **spec):
    world.client.post("/apis/renzan.dev/v1alpha1/queues", {
        **kind("Queue"), "metadata": {"name": name}, "spec": spec})


def ask(world, url):
    """Makes the API server ask that webhook; it learns of the change after a moment."""
    world.client.patch(WEBHOOK, [{"op": "replace", "path": "/webhooks/0/clientConfig", "value": {
        "url": url, "caBundle": base64.b64encode(
            pathlib.Path(f"{world.run}/certs/ca.crt").read_bytes()).decode()}}], JSON_PATCH)

    def is_asked():
        try:
            world.client.post(f"{GANG_JOBS}?dryRun=All", job("probe", minReplicas=2))
            return False
        except ApiError:
            return True

    wait_until(is_asked, "the API server asks the webhook")


def the_script_makes_certificates(world):
    script = str(DEPLOY / "admission/make-certificate")
    code, out = world.command(script, "none")
    expect(code != 0 and "NotFound" in out, f"it writes a Secret into no namespace: {out}")
    certificates = []
    for run in range(3):
        if run == 2:
            # A run that did not come to its end has left an authority that nobody uses.
            trusted = world.client.get(WEBHOOK)["webhooks"][0]["clientConfig"]["caBundle"]
            unused = pathlib.Path(f"{world.run}/certs/ca.crt").read_bytes()
            world.client.patch(WEBHOOK, [{
                "op": "replace", "path": "/webhooks/0/clientConfig/caBundle",
                "value": base64.b64encode(unused + base64.b64decode(trusted)).decode()}],
                JSON_PATCH)
        code, out = world.command(script)
        expect(code == 0 and "renzan-admission.renzan-system.svc" in out, out)
        secret = world.client.get("/api/v1/namespaces/renzan-system/secrets/renzan-admission")
        expect(secret["type"] == "kubernetes.io/tls", secret["type"])
        certificates.append(base64.b64decode(secret["data"]["tls.crt"]).decode())
    bundle = world.client.get(WEBHOOK)["webhooks"][0]["clientConfig"]["caBundle"]
    trusted = pathlib.Path(f"{world.run}/trusted.crt")
    trusted.write_bytes(base64.b64decode(bundle))
    expect(trusted.read_text().count("BEGIN CERTIFICATE") == 2, trusted.read_text())
    for number, certificate in enumerate(certificates):
        pathlib.Path(f"{world.run}/tls.crt").write_text(certificate)
        code, out = world.command("openssl", "verify", "-purpose", "sslserver", "-verify_hostname",
                                  "renzan-admission.renzan-system.svc", "-CAfile", str(trusted),
                                  f"{world.run}/tls.crt")
        # The previous run's webhook is still in use for a while; older ones are not.
        expect((code == 0) == (number > 0), f"certificate {number}: {out}")
    # After it is applied again, the API server still trusts it.
    world.kubectl("apply", "-k", str(DEPLOY / "1.20/admission"))
    expect(world.client.get(WEBHOOK)["webhooks"][0]["clientConfig"]["caBundle"] == bundle,
           "applying the manifests again removes the certificate")


def bad_jobs_are_refused(world):
    expect("replicas" in refused(world, job("bad", minReplicas=2)), "another reason")
    expect("ten years" in refused(world, job("bad", timeout="3651d")), "another reason")
    for of, spec, fragment in (("Queue", {"limit": {"cpu": 1}, "guaranteed": {"cpu": 2}}, "2 cpu"),
                               ("NodePool", {"idle": "3651d"}, "ten years"),
                               ("ClusterPolicy", {"spotNotice": "3651d"}, "ten years")):
        why = refused(world, {**kind(of), "metadata": {"name": "bad"}, "spec": spec})
        expect(fragment in why, f"of a {of}: {why}")
    listed = world.client.get(GANG_JOBS)["items"]
    expect(not listed, f"a refused job is there: {listed}")
    expect(accepted(world, job("good", replicas=2)) == [], "a good job is warned of")
    world.wait_for("good", "running")


def doubtful_ones_are_warned_of(world):
    for item, fragment in ((job("large", gpus=9), "9 GPUs on one node; the largest has 8 GPUs"),
                           (job("lost", queue="lost"), "there is no queue 'lost'")):
        warnings = accepted(world, item)
        expect(len(warnings) == 1 and fragment in warnings[0], warnings)
        message = world.wait_for_message(item["metadata"]["name"])
        expect(warnings[0].endswith(message), f"{warnings[0]} is not what it says: {message}")
    # A replica that does not lead sees it, too.
    create_queue(world, "lost")
    wait_until(lambda: accepted(world, job("found", queue="lost")) == [], "the queue is seen")


def edits_are_checked(world):
    warnings = accepted(world, job("good", replicas=2, priority=1))
    expect(len(warnings) == 1 and "(priority) apply when it next starts" in warnings[0], warnings)
    world.kubectl("label", "gangjob", "good", "a=b")
    world.kubectl("patch", "gangjob", "good", "--type=merge", "-p", '{"spec":{"cancelled":true}}')
    why = refused(world, job("good", replicas=2, priority=1, cancelled=False))
    expect("no way back" in why or "has ended" in why, why)
    world.wait_for("good", "cancelled")
    expect("has ended (cancelled)" in refused(world, job("good", replicas=1, cancelled=True)),
           "another reason")
    world.kubectl("delete", "gangjob", "good")


def queues_are_for_their_members(world):
    create_queue(world, "closed", members={"users": ["somebody-else"]})
    create_queue(world, "ours", members={"groups": ["system:authenticated"]})

    def is_refused():
        try:
            world.client.post(f"{GANG_JOBS}?dryRun=All", job("probe", queue="closed"))
            return False
        except ApiError as error:
            return error.status == 403

    wait_until(is_refused, "the queue is seen")
    why = refused(world, job("theirs", queue="closed"))
    expect("queue 'closed' is for its members" in why and "ours" in why, why)
    world.kubectl("wait", "--for=condition=MembersChecked", "queue.renzan.dev/ours",
                  "--timeout=60s")
    # Another replica may have seen the queue later.
    accepted(world, job("early", queue="ours", run_seconds=1))
    time.sleep(11)
    accepted(world, job("mine", queue="ours", run_seconds=1))
    world.wait_for("mine", "done")
    message = world.wait_for_message("early")
    expect("who submitted this job was not checked" in message, message)
    why = refused(world, job("urgent", priority=2))
    expect("may have at most 1 (spec.maxPriority of the Queue)" in why, why)


def nothing_depends_on_it(world, webhook):
    why = refused(world, job("bad", minReplicas=2))
    webhook.stop()
    expect(accepted(world, job("bad", minReplicas=2)) == [], "who warns?")
    message = world.wait_for_message("bad")
    expect(message == why, f"at admission: {why}; in the status: {message}")
    expect(not world.status("bad").get("placement"), "a bad job runs")
    accepted(world, job("bad", minReplicas=1, run_seconds=1))
    world.wait_for("bad", "done")


def replicas_renew_the_certificate(world):
    world.kubectl("apply", "-k", str(DEPLOY / "1.20/admission-renewed"))
    secret = "/api/v1/namespaces/renzan-system/secrets/renzan-admission-renewed"
    replicas = [world.start_replica("--admission=127.0.0.1:0",
                                    "--admission-secret=renzan-admission-renewed")
                for _ in range(2)]

    def bundle():
        text = world.client.get(WEBHOOK)["webhooks"][0]["clientConfig"].get("caBundle", "")
        return base64.b64decode(text).decode()

    def served(replica):
        """The certificate, if it is trusted for the webhook's name."""
        port = int(replica.url("admission reviews").rpartition(":")[2].partition("/")[0])
        context = ssl.create_default_context(cadata=bundle())
        try:
            with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(
                    plain, server_hostname="renzan-admission.renzan-system.svc") as connection:
                return ssl.DER_cert_to_PEM_cert(connection.getpeercert(True))
        except ssl.SSLError:
            return ""

    def all_serve_what_is_kept():
        data = world.client.get(secret).get("data") or {}
        kept = base64.b64decode(data.get("tls.crt", "")).decode()
        return kept if kept and all(served(each) == kept for each in replicas) else None

    first = wait_until(all_serve_what_is_kept, "the replicas have a certificate")
    # After it is applied again, everything stays as it is.
    data, before = world.client.get(secret)["data"], bundle()
    world.kubectl("apply", "-k", str(DEPLOY / "1.20/admission-renewed"))
    expect(world.client.get(secret)["data"] == data and bundle() == before,
           "applying the manifests again removes the certificate")
    # The API server trusts it, too.
    world.client.patch(WEBHOOK, [{"op": "replace", "path": "/webhooks/0/clientConfig", "value": {
        "url": replicas[1].url("admission reviews"),
        "caBundle": base64.b64encode(bundle().encode()).decode()}}], JSON_PATCH)
    wait_until(lambda: apply(world, job("bad", minReplicas=2))[0] == 1, "the webhook is asked")
    expires = re.search(rb"\nrenzan_admission_certificate_expiry_timestamp_seconds (\S+)",
                        replicas[1].fetch("probes and metrics", "/metrics")[1])
    expect(expires and 89 < (float(expires[1]) - time.time()) / 86400 < 91, str(expires))
    # Renewed by one, taken up by both. The former authority stays trusted.
    before = bundle()
    world.client.patch(secret, {"data": None})
    wait_until(lambda: all_serve_what_is_kept() not in (None, first), "the replicas have another")
    expect(before.strip() in bundle(), "what is still served is not trusted any more")
    wait_until(lambda: apply(world, job("bad", minReplicas=2))[0] == 1, "the webhook is asked")
    for replica in replicas:
        replica.stop()


def metrics_are_elsewhere(replica):
    expect(replica.fetch("probes", "/healthz")[0] == 200, "there are no probes")
    expect(replica.fetch("probes", "/metrics")[0] == 404, "the port of the probes has metrics")
    status, metrics = replica.fetch("only metrics", "/metrics")
    expect(status == 200 and b"renzan_leads" in metrics, metrics)
    expect(replica.fetch("only metrics", "/healthz")[0] == 404, "the port of metrics has probes")


def main():
    with testing(nodes=["--count=2"], overlay="1.20/admission") as world:
        create_queue(world, "default", maxPriority=1)
        world.play(the_script_makes_certificates, world)
        world.play(replicas_renew_the_certificate, world)
        webhook = ("--admission=127.0.0.1:0", f"--tls-certificate={world.run}/certs/server.crt",
                   f"--tls-key={world.run}/certs/server.key")
        first = world.start_replica(*webhook, "--metrics=127.0.0.1:0")
        world.leading()
        world.play(metrics_are_elsewhere, first)
        follower = world.start_replica(*webhook)
        ask(world, follower.url("admission reviews"))
        for scenario in (bad_jobs_are_refused, doubtful_ones_are_warned_of, edits_are_checked,
                         queues_are_for_their_members):
            world.play(scenario, world)
        world.play(nothing_depends_on_it, world, follower)


if __name__ == "__main__":
    main()
