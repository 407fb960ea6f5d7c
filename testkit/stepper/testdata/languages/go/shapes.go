package main

type T interface{ f(int) int }
type A struct{ n int }

func (a A) f(n int) int {
	defer func() { recover() }()
	if n%5 == 0 {
		panic("x")
	}
	return n * a.n
}
func deep(n int, t T) int {
	if n == 0 {
		return 1
	}
	var b [200]byte
	b[n] = 1
	return deep(n-1, t) + t.f(n) + int(b[n])
}
func main() {
	s := 0
	m := map[string]int{}
	for i := 0; i < 6; i++ {
		s += deep(i*2, A{i})
		m[string(rune(i+65))] = s
	}
	if len(m) == 0 {
		panic(1)
	}
}
