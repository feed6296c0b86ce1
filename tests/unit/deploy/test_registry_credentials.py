"""What kubelets are told by the documented credential provider, in the forms that Kubernetes has for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from htas.model.migrations import ImageRegistry

FOLDER = Path(__file__).parents[3] / "deploy" / "nodes"
PROGRAM = FOLDER / "htas-registry-credentials"
IMAGE = "registry.example:5000/htas"


def asked(tmp_path: Path, request: str, credentials: str | None) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "credentials"
    if credentials is not None:
        file.write_text(credentials)
    env = {"HTAS_REGISTRY_CREDENTIALS": str(file), "PATH": "/usr/bin:/bin"}
    return subprocess.run([PROGRAM], input=request, env=env, capture_output=True, text=True, check=False)


REQUEST = {"kind": "CredentialProviderRequest", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "image": IMAGE}


@pytest.mark.parametrize(
    "request_",
    [json.dumps(REQUEST), json.dumps(REQUEST, indent=2), json.dumps(REQUEST, separators=(",", ":"))],
    ids=["a line", "indented", "dense"],
)
@pytest.mark.parametrize("written", ["htas:secret\n", 'htas:a:b"c\\d', "htas:%s$x `y`\n"])
def test_it_answers_with_what_the_file_holds(request_: str, written: str, tmp_path: Path) -> None:
    done = asked(tmp_path, request_, written)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    user, _, password = written.rstrip("\n").partition(":")
    assert answer["auth"] == {IMAGE: {"username": user, "password": password}}
    assert (answer["kind"], answer["apiVersion"]) == ("CredentialProviderResponse", REQUEST["apiVersion"])
    assert answer["cacheKeyType"] == "Image"


@pytest.mark.parametrize(
    ("request_", "credentials", "complaint"),
    [
        pytest.param(json.dumps(REQUEST), None, "write user:password", id="no file"),
        pytest.param("{}", "a:b", "no CredentialProviderRequest", id="no request"),
    ],
)
def test_what_is_missing_is_told_and_nothing_answered(
    request_: str, credentials: str | None, complaint: str, tmp_path: Path
) -> None:
    done = asked(tmp_path, request_, credentials)
    assert (done.returncode, done.stdout) == (1, "")
    assert complaint in done.stderr


def test_it_is_asked_for_checkpoints_alone() -> None:
    (provider,) = yaml.safe_load((FOLDER / "credential-providers.yaml").read_text())["providers"]
    assert provider["name"] == PROGRAM.name
    assert provider["matchImages"] == [IMAGE], "not the whole registry"
    assert not {"pull_secret"} & set(ImageRegistry.__struct_fields__), "and no namespace holds a secret for it"
