"""What people did while each recording was made, at the recorded times."""

from __future__ import annotations

from tests.recordings.playing import Step


def create(at_s: float, vm: str) -> Step:
    return Step(at_s, lambda played: played.create_vm(vm))


def pin(at_s: float, vm: str, node: str) -> Step:
    return Step(at_s, lambda played: played.pin(vm, node))


def delete_vmi(at_s: float, vm: str) -> Step:
    return Step(at_s, lambda played: played.delete_vmi(vm))


def delete_vm(at_s: float, vm: str) -> Step:
    return Step(at_s, lambda played: played.delete_vm(vm))


def delete_launcher(at_s: float, vm: str) -> Step:
    return Step(at_s, lambda played: played.delete_launcher(vm))


def start(at_s: float, vm: str) -> Step:
    return Step(at_s, lambda played: played.start(vm))


def halt(at_s: float, vm: str) -> Step:
    return Step(at_s, lambda played: played.halt(vm))


def kill_kubelet(at_s: float, node: str) -> Step:
    return Step(at_s, lambda played: played.set_dead(node, "yes"))


def revive_kubelet(at_s: float, node: str) -> Step:
    return Step(at_s, lambda played: played.set_dead(node, None))


def set_allocatable(at_s: float, node: str, units: int) -> Step:
    return Step(at_s, lambda played: played.set_allocatable(node, units))


# Each step stands some milliseconds before the event that shows it. The refusing node of
# refused-by-kubelet-then-other-node is in its first list already, with the knob set.
STEPS: dict[str, tuple[Step, ...]] = {
    "gated-pinned-restart-stop": (
        create(1.82, "vm1"),
        pin(4.01, "vm1", "gpu-2"),
        delete_vmi(9.12, "vm1"),
        pin(9.92, "vm1", "gpu-3"),
        halt(16.09, "vm1"),
    ),
    "refused-by-kubelet-then-other-node": (
        create(1.87, "vm1"),
        pin(2.17, "vm1", "gpu-1"),
        pin(13.16, "vm1", "gpu-2"),
    ),
    "pinned-unschedulable": (
        create(1.82, "vm1"),
        create(2.04, "vm2"),
        create(2.20, "vm3"),
        pin(2.50, "vm1", "gpu-1"),
        pin(2.77, "vm2", "gpu-1"),
        pin(3.03, "vm3", "gpu-1"),
    ),
    "two-vms-last-gpu-and-vm-deleted-while-gated": (
        create(1.84, "vm1"),
        create(2.25, "vm2"),
        pin(2.51, "vm1", "gpu-1"),
        delete_vm(5.66, "vm2"),
    ),
    "node-dies-and-returns": (
        create(1.91, "vm1"),
        pin(2.20, "vm1", "gpu-2"),
        kill_kubelet(7.31, "gpu-2"),
        revive_kubelet(32.46, "gpu-2"),
    ),
    "device-plugin-restart-allocatable-zero": (
        create(1.82, "vm1"),
        pin(2.06, "vm1", "gpu-2"),
        set_allocatable(7.17, "gpu-2", 0),
        set_allocatable(11.26, "gpu-2", 2),
    ),
    "vmi-deleted-by-run-strategy": (
        create(2.0, "vm1"),
        create(2.2, "vm2"),
        create(2.4, "vm3"),
        start(3.0, "vm2"),
        pin(6.0, "vm1", "gpu-1"),
        pin(6.2, "vm2", "gpu-2"),
        pin(6.4, "vm3", "gpu-3"),
        delete_vmi(11.0, "vm1"),
        delete_vmi(12.0, "vm2"),
        delete_vmi(13.0, "vm3"),
        pin(18.0, "vm3", "gpu-2"),
    ),
    "launcher-deleted-before-it-ran": (
        create(2.0, "vm1"),
        create(2.2, "vm2"),
        create(2.4, "vm3"),
        start(3.0, "vm2"),
        delete_launcher(6.0, "vm1"),
        delete_launcher(6.5, "vm2"),
        delete_launcher(7.0, "vm3"),
        pin(24.0, "vm1", "gpu-1"),
    ),
}
