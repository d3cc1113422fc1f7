"""``evokernel verifier`` as a person runs it: the token, what is refused, a service over https."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evokernel_core.cli.verifier import command
from evokernel_core.domain.errors import UsageError, VerifierUnavailable


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))
    monkeypatch.delenv("EVOKERNEL_VERIFIER_TOKEN", raising=False)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_the_token_is_made_once_for_its_owner_alone(home: Path) -> None:
    first, second = run("token").output, run("token").output
    assert first == second
    assert len(first.strip()) >= 32
    assert stat.S_IMODE((home / "verifier" / "token").stat().st_mode) == 0o600


def test_tokens_of_users_are_added_listed_and_revoked(home: Path) -> None:
    options = ["--scope", "read", "--priority", "background", "--days", "3", "--jobs-a-day", "7"]
    added = run("token", "add", "alice", *options)
    token = added.stdout.strip()
    assert added.exit_code == 0 and token.startswith("evk_") and "\n" not in token
    (row,) = json.loads(run("token", "list", "--json").stdout)["tokens"]
    assert (row["user"], row["state"], row["scopes"]) == ("alice", "valid", ["read"])
    assert (row["priorities"], row["jobs_a_day"]) == (["background"], 7)
    listed = run("token", "list").output
    assert "alice" in listed and token not in listed and token.split("_", 2)[2] not in listed
    assert run("token", "revoke", row["id"]).exit_code == 0
    assert "revoked" in run("token", "list").output
    assert "No valid token" in str(run("token", "revoke", "alice").exception)
    assert stat.S_IMODE((home / "verifier" / "tokens.db").stat().st_mode) == 0o600


def test_a_token_file_that_others_can_read_is_closed(home: Path) -> None:
    run("token")
    path = home / "verifier" / "token"
    path.chmod(0o644)
    run("token")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_short_token_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "verifier").mkdir()
    (home / "verifier" / "token").write_text("hunter2\n")
    words = "fewer than 22 characters"
    assert words in str(run("serve").exception)
    monkeypatch.setenv("EVOKERNEL_VERIFIER_TOKEN", "x" * 21)
    assert words in str(run("serve").exception)


def test_an_empty_token_file_is_named(home: Path) -> None:
    (home / "verifier").mkdir()
    (home / "verifier" / "token").write_text("\n")
    result = run("token")
    assert isinstance(result.exception, UsageError) and "is empty" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--host", "0.0.0.0"], "lets others read the token"),
        (["serve", "--tls-cert", "cert.pem"], "both --tls-cert and --tls-key"),
        (["serve", "--tls-cert", "no.pem", "--tls-key", "no.pem"], "as PEM files"),
        (["serve", "--host", "192.0.2.1", "--plain-http"], "cannot listen"),
        (["serve", "--token-file", "missing"], "There is no token in"),
        (["status"], "There is no token in"),
        (["status", "--url", "http://192.0.2.1:1"], "There is no token in"),
    ],
)
def test_what_cannot_work_is_one_sentence(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, UsageError)
    assert words in str(result.exception)


def test_a_token_goes_to_no_other_machine_over_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_VERIFIER_TOKEN", "secret-token")
    result = run("status", "--url", "http://192.0.2.1:1")
    assert isinstance(result.exception, UsageError)
    assert "readable over the network" in str(result.exception)
    assert "secret-token" not in result.output + str(result.exception)


def test_a_service_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_VERIFIER_TOKEN", "secret-token")
    result = run("status", "--url", "http://127.0.0.1:9")
    assert isinstance(result.exception, VerifierUnavailable)


def test_a_service_over_https_tells_its_status(home: Path) -> None:
    certificate, key = str(home / "cert.pem"), str(home / "key.pem")
    request = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*request.split(), *names], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options = ["serve", "--port", port, "--tls-cert", certificate, "--tls-key", key, "--workers", "2"]
    main = "from evokernel_core.cli.main import main; main()"
    environment = os.environ | {"EVOKERNEL_HOME": str(home)}
    served = subprocess.Popen([sys.executable, "-c", main, "verifier", *options], env=environment)
    try:
        ask = ["status", "--url", f"https://localhost:{port}", "--ca-bundle", certificate, "--json"]
        deadline = time.monotonic() + 20
        while (result := run(*ask)).exit_code and time.monotonic() < deadline:
            time.sleep(0.2)
        status = json.loads(result.stdout)
        assert (status["backend"], status["workers"], status["done"]) == ("twin", 2, 0)
        again = subprocess.run(
            [sys.executable, "-c", main, "verifier", "serve", "--port", port],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert (again.returncode, again.stderr.count("\n")) == (2, 2)
        assert "cannot listen" in again.stderr
    finally:
        served.terminate()
        assert served.wait(10) == -signal.SIGTERM
