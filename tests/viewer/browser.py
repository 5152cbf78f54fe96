"""Headless Chromium, driven through its DevTools protocol."""

import asyncio
import contextlib
import itertools
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-extensions", "--hide-scrollbars", "--remote-debugging-port=0"),
)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 60.0


def find_chromium() -> str | None:
    """Return the browser's program, if one is installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a browser of its own.

    Args:
        program: Chromium.
        folder: for its profile.

    Attributes:
        errors: what the page wrote to the console as an error, threw, or was refused by a policy.
    """

    def __init__(self, program: str, folder: Path) -> None:
        self.errors: list[str] = []
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._runner = asyncio.Runner()
        self._runner.run(self._connect(folder / "DevToolsActivePort"))
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self._runner.run(self._disconnect())
        self._runner.close()
        self._process.terminate()
        self._process.wait()

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command of the protocol; returns its result."""
        return self._runner.run(self._send(method, parameters))

    def show(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the window, and the scheme that the user prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Go to a page."""
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression on the page."""
        found = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, script: str) -> Any:
        """Return the value of an expression as soon as it is true."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(AssertionError):  # names of a page that is not loaded yet
                if (found := self.evaluate(script)) not in (None, False, 0, ""):
                    return found
            self._runner.run(asyncio.sleep(0.02))
        raise AssertionError(f"never true: {script}\n{self.evaluate('document.body.innerText')}")

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element of a selector, whose text begins so, as a mouse does."""
        box = self.wait(
            f"(() => {{ const found = [...document.querySelectorAll({selector!r})]"
            f".find((node) => node.textContent.startsWith({text!r}));"
            "if (!found) return null; found.scrollIntoView({block: 'nearest'});"
            "const box = found.getBoundingClientRect();"
            "return box.width ? [box.x + box.width / 2, box.y + box.height / 2] : null; })()"
        )
        self.click_at(*box)

    def click_at(self, x: float, y: float) -> None:
        """Click a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, *keys: str) -> None:
        """Press keys one after another."""
        for key in keys:
            text: Mapping[str, str] = {"text": key} if len(key) == 1 else {}
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    async def _connect(self, port_file: Path) -> None:
        end = time.monotonic() + _SECONDS
        while not (port_file.is_file() and port_file.read_text().count("\n")):
            assert time.monotonic() < end, "the browser did not start"
            await asyncio.sleep(0.02)
        port = port_file.read_text().splitlines()[0]
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json") as answer:
            (page,) = [one for one in await answer.json() if one["type"] == "page"]
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        self._reading = asyncio.create_task(self._read())

    async def _disconnect(self) -> None:
        self._reading.cancel()
        await self._socket.close()
        await self._session.close()

    async def _read(self) -> None:
        async for message in self._socket:
            found = message.json()
            if "id" in found:
                self._answers.pop(found["id"]).set_result(found)
            else:
                self._note(found["method"], found["params"])

    def _note(self, event: str, about: Mapping[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.errors.append(str(about["exceptionDetails"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            self.errors.append(str(about["args"]))

    async def _send(self, method: str, parameters: Mapping[str, Any]) -> Any:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        found = await asyncio.wait_for(answer, _SECONDS)
        if "error" in found:
            raise AssertionError(f"{method}: {found['error']}")
        return found["result"]
