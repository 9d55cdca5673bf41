"""The files of deploy/: what they name is there, and they agree with each other and with the server."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman.config import read_config
from dragoman.gateway.send import WINDOW
from dragoman.serving import KEEP_ALIVE_SECONDS
from dragoman.tables import seconds
from tests.deploy.fleet import DEPLOY, replaced
from tests.harness.paths import CHECKOUT, SOURCE

OURS = ("migrate", "api-1", "api-2", "worker-1", "worker-2")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
NGINX = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
CONFIG = read_config(
    tomllib.loads((DEPLOY / "dragoman.toml").read_text(encoding="utf-8")), {}, "dragoman.toml"
)


def instructions(name: str) -> list[str]:
    """The arguments of an instruction of the Dockerfile, wherever it stands."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^(?:HEALTHCHECK .* )?{name} (.*)$", joined, re.MULTILINE)


def nginx(name: str) -> str:
    """The value of a directive of the proxy that is there once."""
    (value,) = re.findall(rf"^\s*{name} ([^;]*);", NGINX, re.MULTILINE)
    return value


def test_the_image_has_the_python_that_the_tests_run_on_and_copies_what_is_there() -> None:
    (workflow,) = set(
        re.findall(
            r'python-version: "([\d.]+)"', (CHECKOUT / ".github/workflows/conformance.yml").read_text()
        )
    )
    assert {one.split()[0] for one in instructions("FROM")} == {f"python:{workflow}-slim-bookworm"}
    assert set(re.findall(r"/lib/python([\d.]+)/", DOCKERFILE)) == {workflow}
    copied = [one.split()[:-1] for one in instructions("COPY") if not one.startswith("--from")]
    assert copied == [["requirements/serve.lock"], ["src/dragoman"], ["LICENSE"]]
    ignored = (CHECKOUT / ".dockerignore").read_text().splitlines()
    for (path,) in copied:
        assert (CHECKOUT / path).exists()
        assert f"!{path}" in ignored, "it is left out of what the builder gets"


def test_the_image_is_no_root_and_ends_by_a_signal_that_reaches_the_server() -> None:
    assert instructions("USER") == ["10001:10001"]
    assert [ast.literal_eval(one) for one in instructions("ENTRYPOINT")] == [["python", "-m", "dragoman"]]
    (check, command) = (ast.literal_eval(one) for one in instructions("CMD"))
    assert command == ["serve", "--data", "/data"]
    assert instructions("VOLUME") == ["/data"]
    assert check[:2] == ["python", "-c"]
    compile(check[2], "HEALTHCHECK", "exec")
    assert "http://127.0.0.1:8080/readyz" in check[2]
    assert "--require-hashes" in DOCKERFILE


@pytest.mark.needs("openssl")
def test_the_configuration_is_good_with_the_secrets_that_are_made_once(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    environment = kept | {"DRAGOMAN": f"{sys.executable} -m dragoman", "PYTHONPATH": str(SOURCE)}
    secrets = tmp_path / "secrets"
    made = subprocess.run(
        [DEPLOY / "make-secrets", secrets], env=environment, check=True, capture_output=True
    )
    assert b"Traceback" not in made.stderr
    file = tmp_path / "dragoman.toml"
    text = replaced(
        (DEPLOY / "dragoman.toml").read_text(), {"/run/secrets": str(secrets), "@postgres/": "@127.0.0.1:1/"}
    )
    file.write_text(text, encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "dragoman", "check", "--config", file],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    # All of it is read before the database is asked, which is not there.
    assert (checked.returncode, "127.0.0.1:1/dragoman cannot be reached" in checked.stderr) == (1, True), (
        checked
    )
    before = {one.name: one.read_bytes() for one in secrets.iterdir()}
    subprocess.run([DEPLOY / "make-secrets", secrets], env=environment, check=True, capture_output=True)
    assert {one.name: one.read_bytes() for one in secrets.iterdir()} == before
    assert before.keys() == COMPOSE["secrets"].keys()


def test_waits_fit_into_each_other_from_the_server_to_the_proxy_and_its_stop() -> None:
    server = CONFIG.server
    read = seconds(nginx("proxy_read_timeout"), "nginx")
    assert read > WINDOW + 10, "a blocking send is answered by Dragoman, and not by the proxy"
    assert read > 2 * seconds(server.heartbeat, "heartbeat")
    assert seconds(nginx("keepalive_timeout"), "nginx") < KEEP_ALIVE_SECONDS
    stop = seconds(server.notice, "notice") + seconds(server.drain, "drain")
    for name in OURS[1:]:
        assert seconds(SERVICES[name]["stop_grace_period"], name) >= stop + 5
    assert int(nginx("client_max_body_size").removesuffix("m")) * 2**20 > CONFIG.limits.body


def test_the_proxy_is_the_one_that_is_believed_and_sends_nothing_twice() -> None:
    front = {
        name: one["networks"].get("front") for name, one in SERVICES.items() if "front" in one["networks"]
    }
    assert front.keys() == {"proxy", "api-1", "api-2"}
    assert CONFIG.server.trusted_proxies == (front["proxy"]["ipv4_address"],)
    assert re.findall(r"^\s*server (\S+:\d+) ", NGINX, re.MULTILINE) == ["api-1:8080", "api-2:8080"]
    assert CONFIG.server.listen.endswith(":8080")
    assert nginx("proxy_buffering") == "off"
    assert nginx("proxy_http_version") == "1.1"
    assert nginx("proxy_next_upstream") == "error timeout", "nothing that makes a POST be sent again"
    headers = dict(re.findall(r"^\s*proxy_set_header (\S+) (\S+);", NGINX, re.MULTILINE))
    assert headers == {
        "Connection": '""',
        "Host": "$http_host",
        "X-Forwarded-For": "$remote_addr",
        "Forwarded": '""',
    }


def test_only_the_proxy_has_a_port_outside_and_nothing_may_do_more_than_it_must() -> None:
    assert [name for name, one in SERVICES.items() if "ports" in one] == ["proxy"]
    assert COMPOSE["networks"]["back"] == {"internal": True}
    assert set(SERVICES["postgres"]["networks"]) == set(SERVICES["temporal"]["networks"]) == {"back"}
    jobs = {"migrate", "temporal-schema", "temporal-namespace"}
    for name, one in SERVICES.items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
        if name not in jobs:
            assert one["deploy"]["resources"]["limits"].keys() == {"cpus", "memory", "pids"}, name


def test_every_secret_is_a_file_that_whoever_names_it_is_given() -> None:
    named = {name: set(one.get("secrets", ())) for name, one in SERVICES.items()}
    assert set().union(*named.values()) == COMPOSE["secrets"].keys()
    config = set(re.findall(r"/run/secrets/([\w.-]+)", (DEPLOY / "dragoman.toml").read_text()))
    for name in OURS[1:]:
        assert named[name] == config
    assert named["proxy"] == set(re.findall(r"/run/secrets/([\w.-]+)", NGINX))
    for name, one in SERVICES.items():
        said = {
            key: value
            for key, value in one.get("environment", {}).items()
            if "PASSWORD" in key or "PWD" in key
        }
        assert all(value.startswith("/run/secrets/") for value in said.values()), name


def test_servers_wait_for_the_tables_and_the_owner_alone_makes_them() -> None:
    for name in OURS[1:]:
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert SERVICES["migrate"]["command"] == ["migrate", "upgrade"]
    assert SERVICES["migrate"]["environment"]["DRAGOMAN_STORE_URL"].startswith("postgresql://dragoman_owner@")
    assert CONFIG.store.url.startswith("postgresql://dragoman@")
    for name in ("worker-1", "worker-2"):
        assert SERVICES[name]["command"][0] == "worker"
        port = CONFIG.worker.listen.split(":")[1]
        assert f"http://127.0.0.1:{port}/readyz" in SERVICES[name]["healthcheck"]["test"][-1]


@pytest.mark.needs("nginx", "openssl")
def test_the_proxy_takes_its_configuration(tmp_path: Path) -> None:
    for name in ("key", "certificate"):
        (tmp_path / f"tls-{name}.pem").touch()
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "1",
    ]
    files = ["-keyout", tmp_path / "tls-key.pem", "-out", tmp_path / "tls-certificate.pem"]
    subprocess.run([*made, *files], check=True, capture_output=True)
    places = {
        " /tmp/": f" {tmp_path}/",
        "/run/secrets": str(tmp_path),
        "api-1:": "127.0.0.1:",
        "api-2:": "127.0.0.2:",
    }
    file = tmp_path / "nginx.conf"
    file.write_text(replaced(NGINX, places), encoding="utf-8")
    tried = subprocess.run(["nginx", "-t", "-c", file], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    assert "warn" not in tried.stderr
