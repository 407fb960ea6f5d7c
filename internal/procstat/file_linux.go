package procstat

import "golang.org/x/sys/unix"

// ReadFile is os.ReadFile for small files of /proc, with four system calls instead of ten.
func ReadFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for b := make([]byte, 0, 1024); ; {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if n <= 0 || err != nil {
			return b, err
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
