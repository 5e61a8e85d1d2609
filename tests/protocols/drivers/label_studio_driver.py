"""Starts Label Studio, connects a router, and annotates tasks.

Arguments: URL of the service, API key, an empty folder, the labels of the model. Prints JSON.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import requests

url, key, folder, *labels = sys.argv[1:]
EMAIL, PASSWORD = "ann@example.com", "a-password-of-ann"
choices = "".join(f'<Choice value="{label}"/>' for label in labels)
CONFIG = f"""<View><Text name="subject" value="$subject"/><Text name="text" value="$text"/>
<Choices name="department" toName="text" choice="multiple">{choices}</Choices></View>"""

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
site = f"http://127.0.0.1:{port}"
environment = {
    **os.environ,
    "LABEL_STUDIO_BASE_DATA_DIR": folder,
    "SECRET_KEY": "a-secret-of-a-test",
    "ML_BLOCK_LOCAL_IP": "false",
    "SSRF_PROTECTION_ENABLED": "false",
    "LATEST_VERSION_CHECK": "false",
    "COLLECT_ANALYTICS": "false",
    "ML_TIMEOUT_HEALTH": "60",
    "ML_TIMEOUT_SETUP": "60",
}
command = [str(Path(sys.executable).with_name("label-studio")), "start", "--no-browser"]
command += ["--username", EMAIL, "--password", PASSWORD, "--port", str(port), "--internal-host", "127.0.0.1"]
with (Path(folder) / "log").open("wb") as log:
    server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
http = requests.Session()


def wait(check, seconds=500.0):
    end = time.monotonic() + seconds
    while not (found := check()):
        assert server.poll() is None, (Path(folder) / "log").read_text()[-4000:]
        assert time.monotonic() < end, (Path(folder) / "log").read_text()[-4000:]
        time.sleep(0.5)
    return found


def is_up():
    try:
        return requests.get(f"{site}/health", timeout=5).ok
    except requests.RequestException:
        return False


def call(method, path, *statuses, **body):
    headers = {"X-CSRFToken": http.cookies.get("csrftoken", "")}
    response = http.request(method, site + path, headers=headers, timeout=300, **body)
    assert response.status_code in statuses, f"{method} {path}: {response.status_code} {response.text[:1000]}"
    return response.json() if response.content else None


try:
    wait(is_up)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', http.get(f"{site}/user/login/").text)[1]
    form = {"email": EMAIL, "password": PASSWORD, "csrfmiddlewaretoken": token}
    http.post(f"{site}/user/login/", data=form, timeout=60).raise_for_status()
    project = call("POST", "/api/projects", 201, json={"title": "mail", "label_config": CONFIG})["id"]
    backend = {
        "url": f"{url}/label-studio/routers/desk",
        "project": project,
        "title": "Covey",
        "auth_method": "BASIC_AUTH",
        "basic_auth_user": "covey",
        "basic_auth_pass": "cov_wrong",
    }
    refused = http.post(
        f"{site}/api/ml", json=backend, headers={"X-CSRFToken": http.cookies["csrftoken"]}, timeout=300
    )
    created = call("POST", "/api/ml", 201, json={**backend, "basic_auth_pass": key})
    state = call("GET", f"/api/ml/{created['id']}", 200)
    # Label Studio has created a webhook for all events, without the password.
    (hook,) = call("GET", f"/api/webhooks/?project={project}", 200)
    assert hook["url"] == backend["url"] + "/webhook"
    headers = {"Authorization": f"Bearer {key}"}
    call("PATCH", f"/api/webhooks/{hook['id']}/", 200, json={"headers": headers})
    tasks = [{"data": json.loads(line)} for line in (Path(folder) / "tasks.jsonl").read_text().splitlines()]
    call("POST", f"/api/projects/{project}/import", 200, 201, json=tasks)
    call(
        "POST",
        f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}",
        200,
        json={"selectedItems": {"all": True, "excluded": []}},
    )
    found = call("GET", f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true", 200)
    predictions = {}
    for task in found:
        (prediction,) = call("GET", f"/api/predictions?task={task['id']}", 200)
        predictions[task["data"]["subject"]] = [
            choice for region in prediction["result"] for choice in region["value"]["choices"]
        ]
        assert prediction["model_version"] == "mail 1"

    def region(label):
        value = {"choices": [label]}
        return {"result": [{"from_name": "department", "to_name": "text", "type": "choices", "value": value}]}

    annotations = [
        call("POST", f"/api/tasks/{task['id']}/annotations/", 201, json=region(labels[0]))
        for task in found[:2]
    ]
    call("PATCH", f"/api/annotations/{annotations[1]['id']}/", 200, json=region(labels[1]))
    versions = call("GET", f"/api/ml/{created['id']}/versions", 200)["versions"]
    print(
        json.dumps(
            {
                "state": state["state"],
                "model_version": state["model_version"],
                "versions": versions,
                "wrong_key": refused.status_code,
                "predictions": predictions,
                "annotated": [task["data"]["subject"] for task in found[:2]],
            }
        )
    )
finally:
    server.terminate()
    server.wait(60)
