// Prints what KubeVirt's operator would install, one JSON object a line: CRDs, roles, service accounts.
//
// Built inside a KubeVirt checkout through an overlay (tests/kubevirt/assets.py); nothing is written there.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/install"
	"kubevirt.io/kubevirt/pkg/virt-operator/util"
)

const namespace = "kubevirt"

func main() {
	operators, err := components.NewKubeVirtCrd()
	end(err)
	strategy, err := install.GenerateCurrentInstallStrategy(
		&util.KubeVirtDeploymentConfig{Namespace: namespace}, "", namespace)
	end(err)
	show(operators)
	each(strategy.CRDs())
	each(strategy.ServiceAccounts())
	each(strategy.ClusterRoles())
	each(strategy.ClusterRoleBindings())
	each(strategy.Roles())
	each(strategy.RoleBindings())
}

func each[T any](objects []T) {
	for _, object := range objects {
		show(object)
	}
}

func show(object any) { end(json.NewEncoder(os.Stdout).Encode(object)) }

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
