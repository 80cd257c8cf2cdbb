// SPDX-License-Identifier: Apache-2.0

// Package images reads boot images from OCI registries and keeps their layers in a bounded cache on disk.
package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/singleflight"
)

// Kind is what a layer of a boot image is.
type Kind string

// The kinds of layers that machines boot.
const (
	Kernel    Kind = "kernel"
	Initramfs Kind = "initramfs"
	SquashFS  Kind = "squashfs"
	UKI       Kind = "uki"
)

// mediaTypes are those by which a boot operator knows the layers of an image.
var mediaTypes = map[types.MediaType]Kind{
	"application/vnd.ironcore.image.kernel":    Kernel,
	"application/vnd.ironcore.image.initramfs": Initramfs,
	"application/vnd.ironcore.image.squashfs":  SquashFS,
	"application/vnd.ironcore.image.uki":       UKI,
}

// Layer is a file of a boot image.
type Layer struct {
	Digest v1.Hash
	Size   int64
}

// Image is a boot image of one architecture. It is named by digest, so that it never changes.
type Image struct {
	// Repository is where the image is, without tag and digest.
	Repository string
	Digest     v1.Hash
	Layers     map[Kind]Layer
}

// Reference names the image by its digest.
func (i Image) Reference() string { return i.Repository + "@" + i.Digest.String() }

// Layer finds a layer by its digest.
func (i Image) Layer(digest string) (Layer, bool) {
	for _, layer := range i.Layers {
		if layer.Digest.String() == digest {
			return layer, true
		}
	}
	return Layer{}, false
}

// Options say where images may come from and where their layers are kept.
type Options struct {
	// Folder holds the layers.
	Folder string
	// Limit bounds the bytes of all layers together.
	Limit int64
	// Allowed are registries, or registries with the beginning of a path, such as ghcr.io/example. Nothing else is asked.
	Allowed []string
	// Arch chooses among the images of an index: amd64 or arm64.
	Arch string
	// Keychain has the credentials for registries; nil asks without.
	Keychain authn.Keychain
	// Transport reaches the registries; nil is the usual one.
	Transport http.RoundTripper
}

// Store resolves images and serves their layers.
type Store struct {
	options Options
	cache   *cache
	flights singleflight.Group

	mu     sync.Mutex
	images map[string]Image // by Reference
}

// downloadLimit bounds the download of one layer.
const downloadLimit = 10 * time.Minute

// maxImages bounds the images that are remembered; a forgotten one is asked for anew.
const maxImages = 256

// New opens a store. Layers of an earlier run are used again.
func New(options Options) (*Store, error) {
	cache, err := openCache(options.Folder, options.Limit)
	if err != nil {
		return nil, err
	}
	if options.Transport == nil {
		options.Transport = remote.DefaultTransport
	}
	if options.Keychain == nil {
		options.Keychain = authn.NewMultiKeychain()
	}
	return &Store{options: options, cache: cache, images: map[string]Image{}}, nil
}

// ErrNotAllowed means that an image is of a registry that is not in the list.
var ErrNotAllowed = errors.New("its registry is not allowed; add it to --allow-registries")

// Resolve reads the manifest of an image. An image by digest is asked for once.
func (s *Store) Resolve(ctx context.Context, reference string) (Image, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return Image{}, fmt.Errorf("image %.256q: %w; write registry/path:tag or registry/path@digest", reference, err)
	}
	if !allowed(s.options.Allowed, ref.Context()) {
		return Image{}, fmt.Errorf("image %s: %w", ref, ErrNotAllowed)
	}
	if known, ok := s.remembered(ref.Name()); ok {
		return known, nil
	}
	found, err, _ := s.flights.Do(ref.Name(), func() (any, error) { return s.resolve(ctx, ref) })
	if err != nil {
		return Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	return found.(Image), nil //nolint:forcetypeassert // resolve gives nothing else
}

// allowed compares with each entry by whole path segments.
func allowed(list []string, repository name.Repository) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		entry = strings.TrimSuffix(entry, "/")
		for _, spelled := range []string{repository.Name(), strings.TrimPrefix(repository.Name(), "index.")} {
			if entry != "" && (spelled == entry || strings.HasPrefix(spelled, entry+"/")) {
				return true
			}
		}
		return false
	})
}

func (s *Store) resolve(ctx context.Context, ref name.Reference) (Image, error) {
	image, err := remote.Image(ref, append(s.remote(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: s.options.Arch}))...)
	if err != nil {
		return Image{}, fmt.Errorf("%w; check the name, the credentials, and that it is there for linux/%s", err, s.options.Arch)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return Image{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return Image{}, err
	}
	found := Image{Repository: ref.Context().Name(), Digest: digest, Layers: map[Kind]Layer{}}
	for _, descriptor := range manifest.Layers {
		if kind, ours := mediaTypes[descriptor.MediaType]; ours {
			found.Layers[kind] = Layer{Digest: descriptor.Digest, Size: descriptor.Size}
		}
	}
	if !found.Boots() {
		return Image{}, errors.New("it is no boot image: it has neither a kernel with an initramfs nor a UKI; " +
			"their layers have the media types application/vnd.ironcore.image.kernel, .initramfs and .uki")
	}
	s.remember(found)
	return found, nil
}

// Boots reports that a machine can boot from the image in at least one way.
func (i Image) Boots() bool { return i.PXE() || i.Has(UKI) }

// PXE reports that the image has what iPXE loads.
func (i Image) PXE() bool { return i.Has(Kernel) && i.Has(Initramfs) }

// Has reports that the image has a layer of a kind.
func (i Image) Has(kind Kind) bool { _, has := i.Layers[kind]; return has }

func (s *Store) remote(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(s.options.Keychain), remote.WithTransport(s.options.Transport)}
}

func (s *Store) remembered(reference string) (Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	image, known := s.images[reference]
	return image, known
}

func (s *Store) remember(image Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.images) >= maxImages {
		clear(s.images)
	}
	s.images[image.Reference()] = image
}

// Fetch brings all layers of an image into the cache.
func (s *Store) Fetch(ctx context.Context, image Image) error {
	var total int64
	for _, layer := range image.Layers {
		total += layer.Size
	}
	if total > s.options.Limit {
		return fmt.Errorf("image %s: its layers have %d MiB, and the cache holds %d; raise --cache-size",
			image.Reference(), total>>20, s.options.Limit>>20)
	}
	for kind, layer := range image.Layers {
		blob, err := s.Open(ctx, image, layer)
		if err != nil {
			return fmt.Errorf("image %s: layer %s: %w", image.Reference(), kind, err)
		}
		if err := blob.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Open opens a layer, and downloads it first where it is not in the cache.
func (s *Store) Open(ctx context.Context, image Image, layer Layer) (*Blob, error) {
	if blob, err := s.cache.open(layer); blob != nil || err != nil {
		return blob, err
	}
	_, err, _ := s.flights.Do(layer.Digest.String(), func() (any, error) {
		// Others may wait for the same download: it does not end with the one that asked first.
		going, cancel := context.WithTimeout(context.WithoutCancel(ctx), downloadLimit)
		defer cancel()
		return nil, s.download(going, image, layer)
	})
	if err != nil {
		return nil, err
	}
	blob, err := s.cache.open(layer)
	if blob == nil && err == nil {
		return nil, errors.New("the layer left the cache at once; raise --cache-size")
	}
	return blob, err
}

func (s *Store) download(ctx context.Context, image Image, layer Layer) error {
	ref, err := name.NewDigest(image.Repository + "@" + layer.Digest.String())
	if err != nil {
		return err
	}
	remoteLayer, err := remote.Layer(ref, s.remote(ctx)...)
	if err != nil {
		return fmt.Errorf("%w; check the credentials for the registry", err)
	}
	content, err := remoteLayer.Compressed()
	if err != nil {
		return fmt.Errorf("%w; check that the registry has the layer", err)
	}
	defer func() { _ = content.Close() }() // it was only read
	return s.cache.add(layer, content)
}
