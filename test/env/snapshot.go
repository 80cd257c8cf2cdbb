// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"os"
	"path/filepath"
)

func (e *Env) etcdData() string { return filepath.Join(e.dir, "etcd") }

func (e *Env) snapshot(name string) string { return filepath.Join(e.dir, "snapshot-"+name) }

// SaveEtcd stops etcd, keeps a copy of what it stores, and starts it again. A copy of a member that is stopped is a snapshot.
func (e *Env) SaveEtcd(ctx context.Context, name string) error {
	e.etcd.kill()
	if err := os.CopyFS(e.snapshot(name), os.DirFS(e.etcdData())); err != nil {
		return err
	}
	return e.startEtcd(ctx)
}

// RestoreEtcd puts a copy that SaveEtcd made in the place of what etcd stores, with every component stopped meanwhile. All that
// was stored since is gone, and resource versions are lower than before.
func (e *Env) RestoreEtcd(ctx context.Context, name string) error {
	for _, p := range []*process{e.controllers, e.apiserver, e.etcd} {
		p.kill()
	}
	if err := os.RemoveAll(e.etcdData()); err != nil {
		return err
	}
	if err := os.CopyFS(e.etcdData(), os.DirFS(e.snapshot(name))); err != nil {
		return err
	}
	if err := os.Chmod(e.etcdData(), 0o700); err != nil {
		return err
	}
	for _, start := range []func(context.Context) error{e.startEtcd, e.startAPIServer, e.startControllers} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return nil
}
