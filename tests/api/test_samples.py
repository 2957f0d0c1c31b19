"""The samples of the reference: each is valid in its language, and some run against the stack."""
import os
import shutil
import subprocess
import uuid

import pytest

import pictures

PROGRAMS = {"curl": "bash", "Python": "python3", "Node": "node", "PHP": "php"}
CHECKS = {"curl": ["bash", "-n"], "Python": ["python3", "-m", "py_compile"], "Node": ["node", "--check"], "PHP": ["php", "-l"]}
ENDINGS = {"curl": "sh", "Python": "py", "Node": "mjs", "PHP": "php"}


@pytest.fixture(params=sorted(PROGRAMS))
def language(request):
    if shutil.which(PROGRAMS[request.param]) is None:
        pytest.skip(f"{PROGRAMS[request.param]} is not installed: ./dev deps check")
    return request.param


@pytest.fixture
def samples(anonymous):
    """{operation: {language: program}}"""
    document = anonymous.get("/docs/reference/openapi.json").json
    return {operation["operationId"]: {one["label"]: one["source"] for one in operation["x-codeSamples"]}
            for item in document["paths"].values() for operation in item.values() if isinstance(operation, dict) and "operationId" in operation}


@pytest.fixture
def run(language, stack, client, tmp_path):
    """Runs a program of a language; returns the output."""
    ca = stack.environment["IMGWARD_CA"]
    environment = {**os.environ, "IMGWARD_URL": stack.url, "IMGWARD_KEY": client.key, "CURL_CA_BUNDLE": ca, "SSL_CERT_FILE": ca, "NODE_EXTRA_CA_CERTS": ca}

    def run(program, **more):
        (tmp_path / f"sample.{ENDINGS[language]}").write_text(program, encoding="utf-8")
        options = ["-d", f"openssl.cafile={ca}"] if language == "PHP" else []
        done = subprocess.run([PROGRAMS[language], *options, f"sample.{ENDINGS[language]}"], cwd=tmp_path, env={**environment, **more},
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr + program
        return done.stdout
    return run


def test_every_operation_has_a_valid_sample_in_each_language(language, samples, tmp_path):
    assert len(samples) > 20
    for name, programs in samples.items():
        path = tmp_path / f"{name}.{ENDINGS[language]}"
        path.write_text(programs[language], encoding="utf-8")
        done = subprocess.run([*CHECKS[language], path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (name, done.stdout, done.stderr)


def test_samples_create_an_order_upload_its_file_and_list_it(language, samples, run, client, tmp_path):
    (tmp_path / "beach.jpg").write_bytes(pictures.jpeg(320, 280))
    assert "pending" in run(samples["createAntiAiOrder"][language].replace("summer-1", f"sample-{uuid.uuid4().hex}"))
    order = client.get("/api/v2/orders?limit=1").data["orders"][0]["orderId"]
    upload = client.post(f"/api/v2/orders/{order}/refresh-urls").data["files"][0]["uploadUrl"]
    assert "sizeBytes" in run(samples["uploadFile"][language], UPLOAD_URL=upload)
    assert order in run(samples["listOrders"][language])
