"""The rest of a cluster: virt-controller, scheduler, kubelet, node lifecycle, garbage collector."""
