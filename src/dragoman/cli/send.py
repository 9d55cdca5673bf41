"""`dragoman send`: send a message to any A2A 1.0 agent over HTTP+JSON, and show the answer."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.credentials import TokenEnvOption, credential, hint
from dragoman.cli.settings import JsonOption, refuse

_HEADERS = {"A2A-Version": "1.0"}


def send(
    url: Annotated[
        str, typer.Argument(help="The agent's base URL, or the id of an agent on 127.0.0.1:8080.")
    ],
    text: Annotated[
        list[str] | None, typer.Argument(help="The text; standard input if there is no file.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="A file to send; may be repeated.")
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", "-s", help="Show the answer as it comes.")] = False,
    message_id: Annotated[
        str | None, typer.Option("--message-id", help="Keep it to get the answer again.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", "-t", help="The task to add to, such as one that asks something.")
    ] = None,
    token_env: TokenEnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a message to an agent and print its answer.

    The token in DRAGOMAN_API_KEY is shown to agents on this machine; name it with --token-env for others.
    """
    import httpx2

    from dragoman.model.ids import new_id

    base = url if "://" in url else f"http://127.0.0.1:8080/agents/{url}"
    message = {
        "messageId": message_id or new_id(),
        "role": "ROLE_USER",
        "parts": _parts(text or [], file or []),
        **({"taskId": task} if task else {}),
    }
    shown = credential(token_env, base)
    try:
        with httpx2.Client(headers=_HEADERS | shown, timeout=120.0, trust_env=False) as client:
            if stream:
                with client.stream(
                    "POST", f"{base.rstrip('/')}/message:stream", json={"message": message}
                ) as reply:
                    if reply.status_code != 200:
                        reply.read()
                        _fail(reply.status_code, reply.text, shown)
                    code = _show_stream(reply.iter_lines(), as_json)
            else:
                whole = client.post(f"{base.rstrip('/')}/message:send", json={"message": message})
                if whole.status_code != 200:
                    _fail(whole.status_code, whole.text, shown)
                code = _show(whole.json(), as_json)
    except httpx2.TimeoutException:
        refuse(f"no answer from {base} in time; ask again with --message-id {message['messageId']}", 1)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        refuse(f"{base} cannot be reached: {error}. Is the server running?", 1)
    raise typer.Exit(code)


def _parts(text: list[str], files: list[Path]) -> list[dict[str, Any]]:
    import base64
    import mimetypes

    parts: list[dict[str, Any]] = []
    if text:
        parts.append({"text": " ".join(text)})
    elif not files:
        if sys.stdin.isatty():
            refuse("nothing to send: give a text, a --file, or something on standard input")
        parts.append({"text": sys.stdin.read()})
    for path in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            refuse(f"{path}: {error.strerror}")
        guessed = "text/markdown" if path.suffix == ".md" else mimetypes.guess_type(path.name)[0]
        media_type = guessed or "application/octet-stream"
        parts.append(
            {"raw": base64.b64encode(content).decode(), "filename": path.name, "mediaType": media_type}
        )
    return parts


def _fail(status: int, body: str, shown: dict[str, str]) -> None:
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = body[:200] or "no reason given"
    refuse(f"the agent's server answered {status}: {message}{hint(status, shown)}", 1)


def _show(answer: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print(json.dumps(answer, ensure_ascii=False, indent=2))
    if "message" in answer:
        if not as_json:
            _print_parts(answer["message"]["parts"])
        return 0
    task = answer["task"]
    if not as_json:
        for artifact in task.get("artifacts", []):
            _print_parts(artifact["parts"], end="")
            print(flush=True)
        _print_status(task["id"], task["status"])
    return _exit_code(task["status"]["state"])


def _show_stream(lines: Iterator[str], as_json: bool) -> int:
    code, task_id, open_line = 1, "", False
    for line in lines:
        if not line.startswith("data: "):
            continue
        item = json.loads(line.removeprefix("data: "))
        if as_json:
            print(json.dumps(item, ensure_ascii=False), flush=True)
        if "error" in item:
            refuse(f"the stream broke off: {item['error'].get('message', 'no reason given')}", 1)
        if "message" in item:
            if not as_json:
                _print_parts(item["message"]["parts"])
            return 0
        if "artifactUpdate" in item and not as_json:
            update = item["artifactUpdate"]
            open_line = not update.get("lastChunk")
            _print_parts(update["artifact"]["parts"], end="" if open_line else "\n")
        status = (item.get("task") or item.get("statusUpdate") or {}).get("status")
        task_id = item.get("task", {}).get("id", task_id)
        if status is not None:
            if open_line:
                print(flush=True)
                open_line = False
            if not as_json:
                _print_status(task_id, status)
            code = _exit_code(status["state"])
    return code


def _print_parts(parts: list[dict[str, Any]], end: str = "\n") -> None:
    for part in parts:
        if "text" in part:
            print(part["text"], end=end, flush=True)
        elif "data" in part:
            print(json.dumps(part["data"], ensure_ascii=False, indent=2), flush=True)
        elif "url" in part:
            print(part["url"], flush=True)
        else:
            name = part.get("filename", "a file")
            print(
                f"[{name}: {len(part['raw']) * 3 // 4} bytes, {part.get('mediaType', 'no type')}]", flush=True
            )


def _print_status(task_id: str, status: dict[str, Any]) -> None:
    said = " ".join(part.get("text", "") for part in status.get("message", {}).get("parts", [])).strip()
    print(f"{status['state'].removeprefix('TASK_STATE_')} {task_id} {said}".rstrip(), file=sys.stderr)


def _exit_code(state: str) -> int:
    return 1 if state in ("TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED") else 0
