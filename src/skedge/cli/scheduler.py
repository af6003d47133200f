"""`skedge scheduler`: kube-scheduler's command line. Options -> validate -> complete -> run.

Upstream: `cmd/kube-scheduler/app/server.go`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from skedge.app.process import SchedulerProcess
from skedge.client.clientconfig import ClientConfig, load_in_cluster, load_kubeconfig
from skedge.client.errors import ClientError
from skedge.config import options_validation
from skedge.config.complete import Completed, complete
from skedge.config.encode import to_yaml
from skedge.config.fields import ConfigError, aggregate
from skedge.config.flag_parser import UsageError
from skedge.config.flags import help_text, usage_text
from skedge.config.gates import FeatureGates
from skedge.config.options import Options, feature_gates, parse_options, reported_version, version_text
from skedge.telemetry.logs import ModuleLevel, configure, get_logger

log = get_logger(__name__)


def run(argv: Sequence[str]) -> int:
    try:
        options = parse_options(argv)
        if options.help:
            print(help_text())
            return 0
        gates, notes = feature_gates(options)
        version = reported_version(options)
    except UsageError as error:
        print(usage_text(), file=sys.stderr)
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
    modules = [ModuleLevel(pattern, level) for pattern, level in options.vmodule.items()]
    configure("json" if options.logging_format == "json" else "text", options.v, modules)
    if log.v(1):
        for name, value in options.lines():
            log.info(f'FLAG: --{name}="{value}"')
    for note in notes:
        log.warning(note)
    try:
        return _run(options, gates, version)
    except (ConfigError, ClientError, OSError) as error:
        log.error(error, "command failed")
        return 1


def _run(options: Options, gates: FeatureGates, version: str) -> int:
    problems = options_validation.validate(options)
    if problems:
        raise ConfigError(aggregate(problems))
    done = complete(options, lambda path: Path(path).read_bytes(), gates=gates)
    for warning in done.warnings:
        log.warning(warning)
    client_config = _credentials(done, options)
    if options.write_config_to:
        Path(options.write_config_to).write_text(to_yaml(done.config), encoding="utf-8")
        log.info("Wrote configuration", file=options.write_config_to)
        return 0
    log.info("Starting Kubernetes Scheduler", version=version)
    return _serve(done, client_config, options, gates, version)


def _credentials(done: Completed, options: Options) -> ClientConfig:
    """From the kubeconfig named in the configuration, or of the pod we run in."""
    path = done.config.client_connection.kubeconfig
    if path:
        return load_kubeconfig(path)
    if options.master:
        return load_kubeconfig(Path("/dev/null"))
    log.warning("Neither --kubeconfig nor --master was specified. Using default API client. This might not work.")
    return load_in_cluster()


def _serve(done: Completed, client_config: ClientConfig, options: Options, gates: FeatureGates, version: str) -> int:
    async def main() -> int:
        process = SchedulerProcess(
            done.config,
            client_config,
            gates=gates,
            version=version,
            max_in_unschedulable=options.pod_max_in_unschedulable_pods_duration.seconds,
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, process.stop)
        return await process.run()

    return run_loop(main())


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """Runs a coroutine on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return int(uvloop.run(main))
