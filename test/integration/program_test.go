// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/metalaw/metalaw/test/env"
)

// programs is the folder of the built metalaw; empty where no spec has called it.
var programs string

// program builds metalaw, once, for the first spec that calls it.
var program = sync.OnceValues(func() (path string, err error) {
	if programs, err = os.MkdirTemp("", "metalaw-"); err != nil {
		return "", err
	}
	return env.BuildProgram(context.Background(), programs)
})

// said is what a call of the program came to.
type said struct {
	code     int
	out, err string
}

// metalaw calls the program as a user; an empty name is nobody, without a cluster.
func metalaw(ctx context.Context, user, typed string, args ...string) said {
	GinkgoHelper()
	path, err := program()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, path, args...)
	kubeconfig := ""
	if user != "" {
		kubeconfig, err = controlPlane.KubeconfigFor(env.User{Name: user})
		Expect(err).NotTo(HaveOccurred())
	}
	var out, problems bytes.Buffer
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(typed), &out, &problems
	code := 0
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
	return said{code: code, out: out.String(), err: problems.String()}
}
