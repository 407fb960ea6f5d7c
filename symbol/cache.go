package symbol

import "sync"

// maxCached bounds the symbols of a Cache. They take about 100 bytes each.
const maxCached = 1 << 18

// Cache keeps the tables of images with a build ID for several Resolvers, which must have the same settings.
// When it holds too many symbols, it drops all of them. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	images map[string]*image
}

// image returns the image of a key, which may not have been read yet. A nil Cache, and an image without a
// build ID, get a new one.
func (c *Cache) image(key, buildID string) *image {
	if c == nil || !isBuildID(buildID) {
		return &image{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if im := c.images[key]; im != nil {
		return im
	}
	size := 0
	for _, im := range c.images {
		size += int(im.size.Load())
	}
	if c.images == nil || size > maxCached {
		c.images = map[string]*image{}
	}
	im := &image{}
	c.images[key] = im
	return im
}

// forget makes the next resolver read an image that this one could not read.
func (c *Cache) forget(key string) {
	if c != nil {
		c.mu.Lock()
		delete(c.images, key)
		c.mu.Unlock()
	}
}
