// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// commandsPage asks the program itself what its commands are: they are put together at run time.
func commandsPage(root string) (string, error) {
	cmd := exec.Command("go", "run", "./cmd/metalaw", "reference") //nolint:noctx // It ends by itself.
	cmd.Dir = root
	var problems bytes.Buffer
	cmd.Stderr = &problems
	described, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("metalaw reference: %w: %s", err, strings.TrimSpace(problems.String()))
	}
	m := newPage("The command line", "the commands themselves")
	m.paragraph("`metalaw` asks what an operator asks, with the rights of whoever calls it: through the API server, with the kubeconfig that " +
		"kubectl would use. How to use it in trouble is in [operations](../operations.md#a-stuck-server-the-ways-out). " +
		"The manager's own flags are in [flags](flags.md).")
	m.heading(2, "As a plugin of kubectl, and completion")
	m.paragraph("Linked as `kubectl-metalaw` into a folder of `$PATH` it is `kubectl metalaw`; linked as `kubectl_complete-metalaw` besides, " +
		"kubectl completes it, names of servers and freezes included. For the program by itself: " +
		"`source <(metalaw completion bash)`, or zsh, fish, powershell.")
	m.line("```sh\nln -s metalaw kubectl-metalaw\nln -s metalaw kubectl_complete-metalaw\n```")
	m.line("")
	m.heading(2, "Output and exit codes")
	m.paragraph("Text by default, JSON with `-o json`, YAML with `-o yaml`; colours only on a terminal, and not where `NO_COLOR` is set. " +
		"Questions and notes go to the standard error.")
	m.table([]string{"exit code", "meaning"}, [][]string{
		{"0", "all that was asked is done, or asked where nothing is waited for"},
		{"1", "something was refused, failed, did not end in time, or nothing matched; the output says what"},
		{"2", "the command line makes no sense, or no user was there to confirm; nothing was done. " +
			"Of `status` and `doctor` also: it cannot be told, because the cluster does not answer or rights are missing"},
	})
	m.table([]string{"outcome of a server", "meaning"}, [][]string{
		{"`asked`", "the request is stored; the manager has not ended it yet"},
		{"`done`", "what was asked for is done"},
		{"`unchanged`", "the server is as asked already"},
		{"`refused`", "nothing was changed; the message says why"},
		{"`failed`", "it could not be stored, or the manager could not do it"},
		{"`timed-out`", "the request is stored and had not ended when the wait was over"},
	})
	m.out.Write(described)
	return m.text(), nil
}
