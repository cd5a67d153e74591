"""Checks the manifests for Kubernetes: kubernetes-test.py BINARY FOLDER

Every manifest is validated against the schemas of Kubernetes, and what kubectl makes of them, if it
is installed. Then three hosts are started with the
variables of the StatefulSet, as three pods would be: each with its own name and address, with the
secret that the README describes. They must find each other by the name of the headless service and
answer the probes. Called inside of a mount namespace: /etc/hosts is the test's own.
"""

import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

import kubernetes_validate
import yaml

FOLDER = pathlib.Path("contrib/kubernetes")
# The oldest that the README names, and the newest that the validator knows.
VERSIONS = ["1.25", None]
# Custom resources, which Kubernetes has no schema of.
CUSTOM = {"ServiceMonitor", "Kustomization"}
PODS = ["umbel-0", "umbel-1", "umbel-2"]
PASSWORD = "a good password"


def manifests():
    for file in sorted(FOLDER.glob("*.yaml")):
        for manifest in yaml.safe_load_all(file.read_text()):
            yield file.name, manifest


def validate():
    seen = {}
    for name, manifest in manifests():
        kind = manifest["kind"]
        seen[kind] = manifest
        if kind in CUSTOM:
            continue
        for version in VERSIONS:
            version = version or kubernetes_validate.latest_version()
            kubernetes_validate.validate(manifest, version, strict=True)
            print(f"{name}: {kind} is valid in {version}")
    wanted = {"StatefulSet", "Service", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor"}
    assert wanted <= set(seen), wanted - set(seen)
    return seen


def check_kustomization():
    """kubectl makes valid manifests of the folder: those that kustomization.yaml names."""
    if not shutil.which("kubectl"):
        print("kubectl kustomize: skipped, kubectl is not installed")
        return
    text = run("kubectl", "kustomize", str(FOLDER)).stdout
    made = list(yaml.safe_load_all(text))
    for manifest in made:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    settings = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    named = [m for file, m in manifests() if file in settings["resources"]]
    names = lambda all: sorted((m["kind"], m["metadata"]["name"]) for m in all)
    assert names(made) == names(named), names(made)
    assert {m["metadata"]["namespace"] for m in made} == {settings["namespace"]}
    print(f"kubectl kustomize: {len(made)} valid manifests")


def check_names(seen):
    """What names another thing names one that is there."""
    hosts = seen["StatefulSet"]
    pod = hosts["spec"]["template"]
    services = {m["metadata"]["name"]: m for _, m in manifests() if m["kind"] == "Service"}
    assert hosts["spec"]["serviceName"] in services
    labels = pod["metadata"]["labels"]
    ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    selectors = [service["spec"]["selector"] for service in services.values()]
    selectors += [seen[kind]["spec"]["selector"]["matchLabels"] for kind in ("PodDisruptionBudget", "StatefulSet")]
    selectors.append(seen["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"])
    for selector in selectors:
        assert selector.items() <= labels.items(), selector
    for service in services.values():
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    monitor = seen["ServiceMonitor"]["spec"]
    matched = [s for s in services.values() if monitor["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items()]
    names = {port["name"] for service in matched for port in service["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["endpoints"]} <= names
    assert hosts["spec"]["replicas"] == len(PODS)
    mounts = {mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in hosts["spec"]["volumeClaimTemplates"]}
    assert mounts == volumes, (mounts, volumes)
    return hosts


def variables(container, pod, address):
    """What the kubelet makes of a container's variables."""
    fields = {"metadata.name": pod, "status.podIP": address}
    made = {}
    for variable in container["env"]:
        value = variable.get("value")
        if value is None:
            value = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for name, known in made.items():
            value = value.replace(f"$({name})", known)
        assert "$(" not in value, f"{variable['name']} uses a variable that comes later"
        made[variable["name"]] = value
    return made


def check_compose(binary, folder):
    """The variables of every service make a configuration."""
    compose = yaml.safe_load(pathlib.Path("contrib/compose.yaml").read_text())
    secret = folder / "compose-hash-key"
    secret.write_text("a secret of sixteen bytes or more")
    for name, service in compose["services"].items():
        made = {key: str(value) for key, value in service["environment"].items()}
        # The image says where data is.
        made |= {"UMBEL_HASH_KEY_FILE": str(secret), "UMBEL_DATA": "/var/lib/umbel"}
        shown = run(binary, "config", "show", env=made).stdout
        assert all(word in shown for word in (name, "compose", "10.74.47.1")), shown
        print(f"compose.yaml: the variables of {name} make a configuration")


def run(binary, *arguments, **more):
    return subprocess.run([binary, *arguments], check=True, text=True, capture_output=True, **more)


def make_secret(binary, folder):
    secret = folder / "secret"
    names = ",".join(f"{pod}={pod}.umbel-hosts+umbel" for pod in PODS)
    run(binary, "config", "certs", "--out", str(secret), "--hosts", names)
    (secret / "hash-key").write_text("a secret of sixteen bytes or more")
    user = ["config", "user", "add", "alice", "--permissions", "read,write,admin"]
    run(binary, *user, "--users", str(secret / "users.toml"), input=PASSWORD + "\n")


def probe(address, container, name):
    wanted = container[name]["httpGet"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    url = f"{wanted['scheme'].lower()}://{address}:{ports[wanted['port']]}{wanted['path']}"
    # The kubelet does not verify certificates.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        return urllib.request.urlopen(url, timeout=5, context=context).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def eventually(what, is_so):
    for _ in range(300):
        if is_so():
            return
        time.sleep(0.2)
    sys.exit(f"not within a minute: {what}")


def start(binary, folder, statefulset):
    container = statefulset["spec"]["template"]["spec"]["containers"][0]
    addresses = [f"127.74.47.{pod + 1}" for pod in range(len(PODS))]
    lines = ["127.0.0.1 localhost"]
    for pod, address in zip(PODS, addresses):
        lines.append(f"{address} umbel-hosts {pod}.umbel-hosts {pod}")
    lines.append(f"{addresses[0]} umbel")
    hosts = folder / "hosts"
    hosts.write_text("\n".join(lines) + "\n")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    running = []
    for pod, address in zip(PODS, addresses):
        made = variables(container, pod, address)
        # Pods have volumes and addresses of their own; here they are told apart by these.
        made["UMBEL_DATA"] = str(folder / pod / "data")
        made["UMBEL_BACKUPS"] = str(folder / pod)
        (folder / pod).mkdir()
        # Where the secret is mounted.
        made = {key: value.replace("/etc/umbel", str(folder / "secret")) for key, value in made.items()}
        for port in ("UMBEL_RESP", "UMBEL_HTTP"):
            made[port] = made[port].replace("0.0.0.0", address)
        log = open(folder / f"{pod}.log", "w")
        running.append(subprocess.Popen([binary, *container["args"]], env=made, stdout=log, stderr=log))
    return container, addresses, running


def check_hosts(binary, folder, container, addresses):
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        eventually(f"{name} of all pods", lambda: all(probe(a, container, name) == 200 for a in addresses))
    login = ["--user", "alice", "--ca", str(folder / "secret" / "ca.pem")]
    environment = {"UMBEL_PASSWORD": PASSWORD}
    info = lambda: json.loads(run(binary, "info", "--json", "--at", "umbel:7440", *login, env=environment).stdout)
    eventually("the service's name leads to all hosts", lambda: info()["hosts_known"] == len(PODS))
    run(binary, "add", "images", "cat.png", "--at", "umbel-1.umbel-hosts:7440", *login, env=environment)
    who = [binary, "who", "images", "cat.png", "--at", "umbel:7440", *login]
    # Exit code 1 until it is found.
    is_found = lambda: subprocess.run(who, env=environment, capture_output=True).returncode == 0
    eventually("another pod's key is found", is_found)
    assert run(*who, env=environment).stdout == "cat.png\tumbel-1\n"
    made = run(binary, "backup", "--at", "umbel-1.umbel-hosts:7440", *login, env=environment).stdout
    assert str(folder / "umbel-1") in made, made


def main():
    binary, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
    seen = validate()
    check_kustomization()
    statefulset = check_names(seen)
    check_compose(binary, folder)
    if os.geteuid() != 0:
        print("the hosts are not started: that needs root")
        return
    make_secret(binary, folder)
    container, addresses, running = start(binary, folder, statefulset)
    try:
        check_hosts(binary, folder, container, addresses)
    except BaseException:
        for pod in PODS:
            print(f"-- {pod}", (folder / f"{pod}.log").read_text(), sep="\n", file=sys.stderr)
        raise
    finally:
        for host in running:
            host.terminate()
        codes = [host.wait(timeout=30) for host in running]
    assert codes == [0] * len(PODS), codes
    print("three hosts with the variables of the StatefulSet know each other and answer the probes")


main()
