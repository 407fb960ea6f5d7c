// Package cli has what the commands of seedwalk share: flags, exit codes, names of functions,
// and where libraries and runtimes are on this machine.
//
// Sources: the POSIX shell's exit codes and env(1); no-color.org.
//
// Glossary. A list is a flag that may be repeated.
//
// Strategy. A complaint about a flag is one line that names the nearest flag. Libraries are
// looked for where a variable says, beside this program, and where packages install them.
//
// Known gaps: a value of a list cannot contain a comma.
package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/symbol/server"
)

// Exit codes of the tool itself. Those of record are in package options.
const (
	ExitOK    = 0
	ExitWrong = 1 // the answer is "no"
	ExitUsage = 2
)

// Parse parses flags and handles --help, which goes to the standard output.
// done means: return code at once.
func Parse(f *flag.FlagSet, help string, args []string) (code int, done bool) {
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(Stdout, platformHelp(help))
		return ExitOK, true
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "seedwalk %s: %s; see seedwalk %s --help\n", f.Name(),
			flagComplaint(f, err), f.Name())
		return ExitUsage, true
	}
	return ExitOK, false
}

// Usage reports wrong usage of a command, and returns its exit code.
func Usage(command string, what any) int {
	fmt.Fprintf(os.Stderr, "seedwalk %s: %v; see seedwalk %s --help\n", command, what, command)
	return ExitUsage
}

// Fail reports why a command failed, and returns code.
func Fail(command string, code int, why any) int {
	fmt.Fprintf(os.Stderr, "seedwalk %s: %v\n", command, why)
	return code
}

// Problems reports what a command could not read. It returns ExitWrong if there is such a problem.
func Problems(command string, problems []string) int {
	for _, p := range problems {
		Fail(command, ExitWrong, p)
	}
	return min(len(problems), ExitWrong)
}

// PrintJSON prints v on the standard output: as one line if indent is "".
func PrintJSON(command string, v any, indent string) int {
	e := json.NewEncoder(Stdout)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil && Stdout.Err == nil { // the program reports Stdout.Err at its end
		return Fail(command, ExitUnreadable, err)
	}
	return ExitOK
}

// NotStarted reports why a program could not be started, as record does, and returns the exit code.
func NotStarted(command, program string, err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return Fail(command, options.ExitNotFound, program+": command not found; check the name and PATH")
	}
	return Fail(command, options.ExitCannotRun,
		program+": cannot run: "+options.Reason(err)+"; check that it is an executable file")
}

// Stdout is the standard output of the commands. It keeps the first error of a write. A command whose output
// is incomplete, for example because the disk is full, therefore does not exit with success.
var Stdout = &Output{}

// Output writes to os.Stdout. Err is the first error of a write.
type Output struct{ Err error }

func (o *Output) Write(b []byte) (int, error) {
	n, err := os.Stdout.Write(b)
	if o.Err == nil {
		o.Err = err
	}
	return n, err
}

// WriteString writes s.
func (o *Output) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

// ParseMixed is Parse for commands that take flags after the files too. It returns the files.
func ParseMixed(f *flag.FlagSet, help string, args []string) (files []string, code int, done bool) {
	for {
		if code, done := Parse(f, help, args); done {
			return nil, code, true
		}
		if f.NArg() == 0 {
			return files, ExitOK, false
		}
		files, args = append(files, f.Arg(0)), f.Args()[1:]
	}
}

// List is a flag that may be repeated and takes several values at once.
type List []string

func (l *List) String() string { return strings.Join(*l, ",") }

func (l *List) Set(s string) error {
	for _, v := range strings.Split(s, ",") {
		if v == "" {
			return errors.New("empty name")
		}
		*l = append(*l, v)
	}
	return nil
}

// Seconds is a duration, or a plain number of seconds.
type Seconds time.Duration

func (d *Seconds) String() string { return time.Duration(*d).String() }

func (d *Seconds) Set(s string) error {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		s += "s"
	}
	v, err := time.ParseDuration(s)
	*d = Seconds(v)
	if err == nil {
		return nil
	}
	unit := strings.TrimLeft(s, "0123456789.")
	_, number := strconv.ParseFloat(strings.TrimSuffix(s, unit), 64)
	if _, err := time.ParseDuration("1" + unit); err == nil && number == nil {
		return errors.New("too long: a time is at most 2562047h")
	}
	return errors.New("not a time such as 3, 30s, or 2m")
}

// PID is the number of a process, 0 = not given.
type PID int

func (p *PID) String() string { return strconv.Itoa(int(*p)) }

func (p *PID) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	if *p = PID(n); err != nil || n < 1 {
		return errors.New("not a process ID")
	}
	return nil
}

// TextOptions returns whether to use color and how wide to write, if w is a terminal. Otherwise it returns
// the zero value.
func TextOptions(w *os.File) (opt export.TextOptions) {
	if !term.IsTerminal(int(w.Fd())) {
		return opt
	}
	opt.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(w.Fd())); err == nil {
		opt.Width = width
	}
	return opt
}

// ShortPath returns the path relative to the working folder, or unchanged if it is not below that folder.
func ShortPath(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(wd, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return path
	}
	return rel
}

func CountOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ExitUnreadable means that the input could not be read, or that the output could not be written.
const ExitUnreadable = 3

// SymbolList is --symbols: folders with symbol files, and addresses of symbol servers.
type SymbolList []string

func (l *SymbolList) String() string { return (*List)(l).String() }

func (l *SymbolList) Set(s string) error {
	for _, path := range strings.Split(s, ",") {
		if path == "debuginfod" {
			urls := strings.Fields(os.Getenv("DEBUGINFOD_URLS"))
			if len(urls) == 0 {
				return errors.New("debuginfod needs the addresses of servers in DEBUGINFOD_URLS")
			}
			if err := l.Set(strings.Join(urls, ",")); err != nil {
				return err
			}
			continue
		}
		if strings.Contains(path, "://") {
			if err := server.Check(path); err != nil {
				return err
			}
			*l = append(*l, strings.TrimRight(path, "/"))
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return fmt.Errorf("%q is not a readable folder", path)
		}
		*l = append(*l, path)
	}
	return nil
}

// split returns the folders and the addresses of servers.
func (l SymbolList) split() (folders symbol.Folders, urls []string) {
	for _, s := range l {
		if strings.Contains(s, "://") {
			urls = append(urls, s)
		} else {
			folders = append(folders, s)
		}
	}
	return folders, urls
}

// ReportRefused reports symbol files that belong to another build.
func ReportRefused(n options.Namer, say func(string)) {
	r, ok := n.(interface{ Refused() []symbol.Refusal })
	if !ok {
		return
	}
	for _, f := range r.Refused() {
		say(fmt.Sprintf("%s was not used: its build ID is %s, that of %s is %s", f.File,
			orNone(f.Got), f.Image, f.Want))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// DidYouMean returns the end of a message about an unknown word: the nearest known word, "" if none is near.
func DidYouMean(word string, all []string) string {
	best, near := "", max(2, len(word)/3)+1
	for _, k := range all {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < near {
			best, near = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// longestWord bounds the words that distance compares, in bytes. All known words are shorter.
const longestWord = 100

// distance returns how many letters have to be inserted, removed, changed, or swapped with their neighbor to
// turn a into b (optimal string alignment).
func distance(a, b string) int {
	if len(a) > longestWord || len(b) > longestWord {
		return max(len(a), len(b))
	}
	var d [longestWord + 1][longestWord + 1]int
	for i := 0; i <= len(a); i++ {
		for j := 0; j <= len(b); j++ {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

// wrongValue is package flag's complaint about a value.
var wrongValue = regexp.MustCompile(`^invalid (?:boolean )?value "(.*)" for (?:flag )?-([^ :]+): (.*)$`)

// flagComplaint describes what is wrong with a flag, in our words and with the flag as it is typed.
func flagComplaint(f *flag.FlagSet, err error) string {
	text := err.Error()
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		why := m[3]
		switch why {
		case "parse error":
			why = "not " + kindOf(f, m[2])
		case "value out of range":
			why = "too large or too small"
		}
		return fmt.Sprintf("--%s %s: %s", m[2], m[1], why)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return "--" + strings.TrimLeft(name, "-") + " needs a value"
	}
	name, ok := strings.CutPrefix(text, "flag provided but not defined: -")
	if !ok {
		return text
	}
	name = "--" + strings.TrimLeft(name, "-")
	var known []string
	f.VisitAll(func(g *flag.Flag) { known = append(known, "--"+g.Name) })
	return "there is no flag " + name + DidYouMean(name, known)
}

// kindOf names the kind of value that a flag takes.
func kindOf(f *flag.FlagSet, name string) string {
	g := f.Lookup(name)
	if g == nil {
		return "a valid value"
	}
	getter, ok := g.Value.(flag.Getter)
	if !ok {
		return "a valid value"
	}
	switch getter.Get().(type) {
	case int, int64, uint, uint64:
		return "a whole number"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	case time.Duration:
		return "a time such as 30s or 2m"
	}
	return "a valid value"
}

// NewNamer returns a namer of native functions that also uses folders of symbol files and symbol servers.
// Namers with the same cache share their tables; c may be nil.
func NewNamer(symbols SymbolList, c *symbol.Cache) options.Namer {
	r := symbol.NewResolver()
	r.Cache = c
	folders, urls := symbols.split()
	r.Folders = folders
	if cache, err := os.UserCacheDir(); len(urls) > 0 && err == nil {
		say := func(text string) { fmt.Fprintln(os.Stderr, "seedwalk: "+text) }
		r.Fetch = server.New(urls, filepath.Join(cache, "seedwalk", "symbols"), server.Default, say).Fetch
	}
	return r
}

// CommandCode returns the exit code that a shell would give for a command that has ended.
func CommandCode(cmd *exec.Cmd) int {
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
