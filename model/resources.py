"""The kinds that gpubinder reads or writes, and where the API server serves them.

The one place that knows group, version, plural and scope. Must not know: how a request is made.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the API server serves it."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool = True
    has_status: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """`plural.group`, as kubectl and CRDs name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, or of one object in it."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.is_namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{scope}/{self.plural}{tail}"


GROUP = "gpu.cozystack.io"
VERSION = "v1alpha1"

NODES = Resource("", "v1", "nodes", "Node", is_namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", is_namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
SERVICES = Resource("", "v1", "services", "Service")
STORAGE_CLASSES = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", is_namespaced=False, has_status=False
)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", has_status=False)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", has_status=False)


def _admission(kind: str, plural: str) -> Resource:
    group = "admissionregistration.k8s.io"
    return Resource(group, "v1", plural, kind, is_namespaced=False, has_status=False)


SECRETS = Resource("", "v1", "secrets", "Secret", has_status=False)
MUTATING_WEBHOOKS = _admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
VALIDATING_WEBHOOKS = _admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
ADMISSION = (
    _admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    _admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    _admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    _admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
)
"""What stands in front of the API server; bindings before what they bind."""
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False
)
VIRTUAL_MACHINES = Resource("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
VIRTUAL_MACHINE_INSTANCES = Resource(
    "kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance", has_status=False
)
GPU_CLASSES = Resource(GROUP, VERSION, "gpuclasses", "GPUClass", is_namespaced=False)
GPU_CLAIMS = Resource(GROUP, VERSION, "gpuclaims", "GPUClaim")
GPU_BUDGETS = Resource(GROUP, VERSION, "gpubudgets", "GPUBudget", is_namespaced=False)
WORKLOADS = Resource("cozystack.io", "v1alpha1", "workloads", "Workload", has_status=False)
WORKLOAD_MONITORS = Resource("cozystack.io", "v1alpha1", "workloadmonitors", "WorkloadMonitor")
