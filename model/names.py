"""The names that gpubinder and KubeVirt put on objects: gates, labels, annotations, finalizers."""

from __future__ import annotations

GATE = "gpu.cozystack.io/placement"
"""The scheduling gate on a launcher."""
LABEL_OURS = "app.kubernetes.io/part-of"
OURS = "gpubinder"
"""The value of LABEL_OURS on whatever `gpubinder crds` prints: `gpubinder uninstall` knows it by that."""
FINALIZER = "gpu.cozystack.io/in-use"
"""On claims and classes (R30)."""

ANNOTATION_CLAIMS = "gpu.cozystack.io/claims"
"""On a VM's template or a VMI: the orders it uses, separated by commas (R7)."""
ANNOTATION_CLASS = "gpu.cozystack.io/class"
"""On a VM's template or a VMI: the class of its template claims (R7)."""
ANNOTATION_EPHEMERAL = "kubevirt.io/ephemeral-provisioning"
"""On a temporary launcher that only binds a WaitForFirstConsumer volume."""
ANNOTATIONS_READ = (ANNOTATION_CLAIMS, ANNOTATION_CLASS, ANNOTATION_EPHEMERAL)
"""The only annotations that enter the log."""

LABEL_KUBEVIRT = "kubevirt.io"
LABEL_LAUNCHER = "virt-launcher"
"""The value of LABEL_KUBEVIRT on a launcher."""
LABEL_CREATED_BY = "kubevirt.io/created-by"
"""On a launcher: the uid of its VMI."""
LABEL_MIGRATION_JOB = "kubevirt.io/migrationJobUID"
"""On the target pod of a live migration."""
