"""A real daemon with its web view, and a headless Chromium, for the tests and the benchmark of daemon/http/web."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "http"))
import daemon  # noqa: E402

PATIENCE = 60  # seconds for anything to happen


def missing():
    """The Debian packages that are missing; "" if none is. Starts Debian's Python if another one lacks selenium."""
    lacking = []
    try:
        import selenium  # noqa: F401
    except ImportError:
        debian = "/usr/bin/python3"
        has_it = subprocess.run([debian, "-c", "import selenium"], capture_output=True, check=False).returncode == 0
        if os.path.realpath(sys.executable) != os.path.realpath(debian) and has_it:
            os.execv(debian, [debian, *sys.argv])
        lacking.append("python3-selenium")
    lacking += [package for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver"))
                if not shutil.which(program)]
    return " ".join(lacking)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port):
    """Waits until a server accepts connections."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), PATIENCE).close()
            return
        except ConnectionRefusedError:
            assert time.monotonic() < end, f"nothing listens on port {port}"
            time.sleep(0.02)


class Daemon(daemon.Daemon):
    """A daemon whose web view stays at one address when it is started again."""

    def __init__(self, resourced, resourcectl, config, http=""):
        self.http = f'listen = ["127.0.0.1:{free_port()}"]\n{http}'
        super().__init__(resourced, http=self.http, config=config)
        self.resourcectl = resourcectl
        self.url = f"http://127.0.0.1:{self.port}/"
        self.local = self.path / "local"

    def ctl(self, *arguments):
        subprocess.run([self.resourcectl, "--uri", f"ipc://{self.path}/bus", *arguments], check=True, capture_output=True)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def close(self):
        self.signal(signal.SIGCONT)
        self.stop()
        self.directory.cleanup()


# Collects violations of the policy from the first line of the page on.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
window.announced = [];
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("announce");
  if (place) new MutationObserver(() => window.announced.push(place.textContent)).observe(place, {childList: true, characterData: true, subtree: true});
});
"""


class Browser:
    """A headless Chromium."""

    def __init__(self, width=1280, height=800):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(PATIENCE)
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.resize(width, height)

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def resize(self, width, height, scale=1):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 500)
        self.cdp("Emulation.setTouchEmulationEnabled", enabled=width < 500)

    def prefer(self, scheme):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def run_async(self, script, *arguments):
        return self.driver.execute_async_script(script, *arguments)

    def wait(self, script, *arguments, what=None):
        """Waits until a script returns a true value, and returns it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = self.run(script, *arguments)
            if value:
                return value
            time.sleep(0.02)
        body = self.run("return document.body.innerText")
        raise AssertionError(f"{what or script} did not come true {json.dumps(arguments)}; the page shows:\n{body[:3000]}")

    def open(self, url):
        """Loads a page anew, and waits until it is painted and live. Returns the milliseconds until it was painted."""
        self.driver.get("about:blank")
        self.driver.get(url)
        self.wait('return document.getElementById("live")?.textContent === "live"', what="live")
        return self.wait('return performance.getEntriesByName("painted")[0]?.startTime', what="painted")

    def keys(self, text):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(text).perform()

    def close(self):
        self.driver.quit()
