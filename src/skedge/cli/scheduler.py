"""`skedge scheduler`: kube-scheduler's command line. Options -> validate -> complete -> run.

Upstream: `cmd/kube-scheduler/app/server.go`.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import traceback
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from skedge import names
from skedge.app.collector import calm, expect_large_heap
from skedge.app.failures import reason
from skedge.app.metrics import build_metrics, flag_values
from skedge.app.plugin_files import enable, load_plugins
from skedge.app.policy import use_policy
from skedge.app.process import SchedulerProcess
from skedge.app.serving import serving_settings
from skedge.app.signals import Signals
from skedge.client.clientconfig import ClientConfig, load_in_cluster, load_kubeconfig, with_server
from skedge.client.errors import KubeconfigError
from skedge.config import options_validation
from skedge.config.complete import Completed, complete
from skedge.config.encode import to_yaml
from skedge.config.fields import ConfigError, aggregate
from skedge.config.flag_parser import UsageError
from skedge.config.flags import help_text, usage_text
from skedge.config.gates import FeatureGates
from skedge.config.options import Options, check_versions, feature_gates, parse_options, reported_version, version_text
from skedge.telemetry.logs import ModuleLevel, StreamsHandler, configure, get_logger

log = get_logger(__name__)

_NO_CONFIGURATION: Final = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)


def run(argv: Sequence[str]) -> int:
    try:
        options = parse_options(argv)
        if options.help:
            print(help_text(width=_width()))
            return 0
        gates, notes = feature_gates(options)
        version = reported_version(options)
    except UsageError as error:
        print(usage_text(width=_width()), file=sys.stderr)
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except ConfigError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    text = version_text(options)
    if text is not None:
        print(text)
        return 0
    problems = options_validation.validate_logging(options, gates)
    if problems:
        print(f"Error: {aggregate(problems)}", file=sys.stderr)
        return 1
    handler = _log_to(options)
    for name, value in options.lines():
        if log.v(1):
            log.plain(f'FLAG: --{name}="{value}"')
    for note in notes:
        log.warning(note)
    signals = Signals()
    signals.install()
    try:
        return _run(options, gates, version, signals, handler)
    except Exception as error:
        log.error(reason(error), "command failed")
        if log.v(4):
            log.info("Where it failed", stack="".join(traceback.format_exception(error)))
        return 1
    finally:
        handler.flush()


def _width() -> int:
    """That of the terminal, 0 if output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 0


def _log_to(options: Options) -> StreamsHandler:
    """Logging as the flags say: everything to stderr, or info lines to stdout by the buffer."""
    json = options.logging_format == "json"
    split = options.log_json_split_stream if json else options.log_text_split_stream
    return configure(
        "json" if json else "text",
        options.v,
        [ModuleLevel(pattern, level) for pattern, level in options.vmodule.items()],
        info_stream=sys.stdout if split else None,
        buffer_size=options.log_json_info_buffer_size if json else options.log_text_info_buffer_size,
    )


def _run(options: Options, gates: FeatureGates, version: str, signals: Signals, handler: StreamsHandler) -> int:
    problems = options_validation.validate(options)
    if problems:
        raise ConfigError(aggregate(problems))
    done = complete(options, _read, gates=gates)
    for warning in done.warnings:
        log.warning(warning)
    plugins = load_plugins(options.plugin)
    for name in enable(done.config, plugins):
        log.info("Enabled in all profiles, as the configuration does not name it", plugin=name)
    client_config = _credentials(done, options)
    serving = serving_settings(options)
    metrics = build_metrics(options, gates, _read)

    async def main() -> int:
        expect_large_heap()
        for warning in await use_policy(done, client_config, gates, user_agent=f"{names.COMPONENT_NAME}/{version}"):
            log.warning(warning)
        process = SchedulerProcess(
            done.config,
            client_config,
            gates=gates,
            out_of_tree=plugins,
            metrics=metrics,
            serving=serving,
            flags=flag_values(options),
            version=version,
            emulation_version=f"1.{check_versions(options)}",
            max_in_unschedulable=options.pod_max_in_unschedulable_pods_duration.seconds,
            synced=calm,
        )
        if options.write_config_to:
            await process.check()
            _write(options.write_config_to, to_yaml(done.config))
            if done.config.legacy_plugins:
                log.warning("It names plugins of a legacy Policy or provider, and --config does not take those")
            log.info("Wrote configuration", file=options.write_config_to)
            return 0
        if log.v(2):
            log.info("Using component config", config=to_yaml(done.config))
        log.info("Starting Kubernetes Scheduler", version=version)
        loop = asyncio.get_running_loop()
        signals.connect(loop, process.stop, process.dump)
        flushing = loop.create_task(_flush(handler, options.log_flush_frequency.seconds), name="log flush")
        try:
            return await process.run()
        finally:
            signals.disconnect()
            flushing.cancel()

    return run_loop(main())


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


async def _flush(handler: StreamsHandler, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        handler.flush()


def _credentials(done: Completed, options: Options) -> ClientConfig:
    """From the kubeconfig named in the configuration, or of the pod we run in; `--master` replaces the server."""
    path = done.config.client_connection.kubeconfig
    if path:
        return with_server(load_kubeconfig(path), options.master) if options.master else load_kubeconfig(path)
    if options.master:
        return with_server(ClientConfig(""), options.master)
    log.warning("Neither --kubeconfig nor --master was specified. Using default API client. This might not work.")
    try:
        return load_in_cluster()
    except KubeconfigError as error:
        raise KubeconfigError(f"{_NO_CONFIGURATION} ({error})") from None


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """Runs a coroutine on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return int(uvloop.run(main))
