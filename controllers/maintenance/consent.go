// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ConsentConfigMap in the manager's namespace says since when the manager may act on kinds that it only stored before.
	ConsentConfigMap = "metalaw-consent"
	// ConsentKey is its key for maintenances.
	ConsentKey = "maintenance"
)

// consentAt is when this cluster first ran with a manager that grants maintenances. The first such manager writes it down, once.
func consentAt(ctx context.Context, live client.Reader, write client.Client, namespace string, now time.Time) (time.Time, error) {
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ConsentConfigMap}}
	now = now.UTC().Truncate(time.Second)
	switch err := live.Get(ctx, client.ObjectKeyFromObject(kept), kept); {
	case apierrors.IsNotFound(err):
		kept.Data = map[string]string{ConsentKey: now.Format(time.RFC3339)}
		if err := write.Create(ctx, kept); err != nil {
			return time.Time{}, fmt.Errorf("record that maintenances are granted from now on: %w", err)
		}
		return now, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("read since when maintenances are granted: %w", err)
	}
	if text, ok := kept.Data[ConsentKey]; ok {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, fmt.Errorf("key %s of ConfigMap %s/%s is no time of RFC 3339: %w; correct it, or remove the key to begin now",
				ConsentKey, namespace, ConsentConfigMap, err)
		}
		return at, nil
	}
	if kept.Data == nil {
		kept.Data = map[string]string{}
	}
	kept.Data[ConsentKey] = now.Format(time.RFC3339)
	if err := write.Update(ctx, kept); err != nil {
		return time.Time{}, fmt.Errorf("record that maintenances are granted from now on: %w", err)
	}
	return now, nil
}
