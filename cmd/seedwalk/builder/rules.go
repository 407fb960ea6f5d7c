package builder

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/api"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/sim/conform"
	"github.com/seedwalk/seedwalk/sim/rules"
)

const RulesHelp = `Usage: seedwalk rules [--json] [NAME]

Shows the rules for NAME on one screen, and what happens if a profiler breaks them:
  a method of ICorProfilerInfo 1 to 15     where it may be called, what it does to the process
  a method of ICorProfilerCallback 1 to 11 on which thread it runs, in which mode, under which locks
  an HRESULT, by value or name             what it means, what to do, which row of DoStackSnapshot's
                                           decision table gives it
  a bit of the event mask                  what it delivers, when it may be set
  a rule of stack walking                  the rule and its reason; seedwalk sim shows it
  a rule of the checking proxy             what happens, what to do
  an interface, a slot                     ICorProfilerInfo10: its id and methods; 36: DoStackSnapshot
  a hook, a flag, a symptom                FunctionEnter3, COR_PRF_SNAPSHOT_DEFAULT, hang, crash
Without NAME it lists all names. Case does not matter, COR_PRF_ and CORPROF_E_ may be left out,
and HRESULTs may be decimal.

Options:
  --json           one object: {kind, name, ...} with the columns of docs/contracts.md; without NAME
                   {info, callbacks, bits, results, rules, checks, topics: [names]}

Examples:
  seedwalk rules GetClassFromTokenAndTypeArgs
  seedwalk rules ThreadAssignedToOSThread
  seedwalk rules 80131363
  seedwalk rules thread-destroyed

Exit code: 0 success, 1 no such name, 2 wrong usage.
`

func Rules(args []string) int {
	set := flag.NewFlagSet("rules", flag.ContinueOnError)
	asJSON := set.Bool("json", false, "")
	args = slices.Clone(args)
	for i, a := range args { // -2146233501 is an HRESULT and no flag
		if v, err := strconv.ParseInt(a, 10, 32); err == nil && v < 0 {
			args[i] = fmt.Sprintf("%08X", uint32(v))
		}
	}
	if code, done := cli.Parse(set, RulesHelp, args); done {
		return code
	}
	switch set.NArg() {
	case 0:
		return rulesList(*asJSON)
	case 1:
		return rulesOf(set.Arg(0), *asJSON)
	}
	return cli.Usage("rules", fmt.Sprintf("one name at a time, not %d", set.NArg()))
}

// Contract is the answer to a name. Exactly one of Info, Callback, Bit, Result, Rule, Check, and Listed is
// set.
type Contract struct {
	Kind     string        `json:"kind"`
	Info     *api.Info     `json:"info,omitempty"`
	Places   []placeAnswer `json:"places,omitempty"` // of Info
	Callback *api.Callback `json:"callback,omitempty"`
	MayWait  *bool         `json:"may_wait,omitempty"` // of Callback
	Bit      *api.Bit      `json:"bit,omitempty"`
	Delivers []string      `json:"delivers,omitempty"` // of Bit
	Result   *api.Result   `json:"result,omitempty"`
	Rows     []decision    `json:"decision_table,omitempty"` // of Result
	Rule     *ruleText     `json:"rule,omitempty"`
	Check    *api.Check    `json:"check,omitempty"`
	Listed   *api.Listing  `json:"methods,omitempty"` // of an interface or a slot
}

type placeAnswer struct {
	Place string `json:"place"`
	Net9  string `json:"net9"`
	Net10 string `json:"net10"`
	words string
}

type decision struct {
	Row  string `json:"row"`
	When string `json:"when"`
}

type ruleText struct {
	Name     string `json:"name"`
	Line     string `json:"line"`
	Text     string `json:"text"`
	Source   string `json:"source,omitempty"`
	Enforced string `json:"enforced"`
	Provoked string `json:"provoked"`
	Scenario bool   `json:"scenario"` // seedwalk sim has it
}

// lookUp finds the table row or rule of a name. It returns nil for an unknown name.
func lookUp(name string) *Contract {
	t := api.Load()
	if _, method, ok := strings.Cut(name, "::"); ok { // ICorProfilerInfo::ForceGC
		name = method
	}
	if m := t.FindInfo(name); m != nil {
		return &Contract{Kind: "info", Info: m, Places: placesOf(m)}
	}
	if c := t.FindCallback(name); c != nil {
		wait := c.MayWait()
		return &Contract{Kind: "callback", Callback: c, MayWait: &wait}
	}
	if r := findResult(t, name); r != nil {
		return &Contract{Kind: "result", Result: r, Rows: decisions(r.Value)}
	}
	if b := t.FindBit(name); b != nil {
		return &Contract{Kind: "bit", Bit: b, Delivers: delivers(t, b.Name)}
	}
	if r, err := rules.Find(strings.ToLower(name)); err == nil {
		return &Contract{Kind: "rule",
			Rule: &ruleText{r.Name, r.Line, r.Text, r.Source, r.Enforced, r.Provoked, true}}
	}
	for _, r := range rules.TextRules() {
		if strings.EqualFold(r.Name, name) {
			return &Contract{Kind: "rule",
				Rule: &ruleText{r.Name, r.Line, r.Text, "", r.Enforced, r.Provoked, false}}
		}
	}
	if c := t.FindCheck(name); c != nil {
		return &Contract{Kind: "check", Check: c}
	}
	if l := t.List(name); l != nil {
		return &Contract{Kind: "methods", Listed: l}
	}
	return nil
}

func placesOf(m *api.Info) (all []placeAnswer) {
	for _, p := range api.Places() {
		all = append(all, placeAnswer{p.String(), m.Expect(p, api.Net9).String(),
			m.Expect(p, api.Net10).String(), p.Describe()})
	}
	return all
}

// findResult finds an HRESULT by hexadecimal or decimal value, or by name.
func findResult(t *api.Tables, name string) *api.Result {
	if v, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(name), "0x"), 16, 32); err == nil {
		return t.FindResult(uint32(v))
	}
	if v, err := strconv.ParseUint(name, 10, 32); err == nil {
		return t.FindResult(uint32(v))
	}
	for i := range t.Results {
		for _, prefix := range []string{"", "CORPROF_E_", "CORPROF_E_STACKSNAPSHOT_"} {
			if strings.EqualFold(t.Results[i].Name, prefix+name) {
				return &t.Results[i]
			}
		}
	}
	return nil
}

// decisions are the rows of DoStackSnapshot's decision table that end in value.
func decisions(value uint32) (all []decision) {
	for _, r := range conform.Rows {
		if slices.Contains(r.Results, clr.HRESULT(value)) {
			all = append(all, decision{r.N, r.When()})
		}
	}
	return all
}

// delivers returns the callbacks that a bit turns on, alone or together with other bits.
func delivers(t *api.Tables, bit string) (all []string) {
	for _, c := range t.Callbacks {
		for _, by := range c.By {
			if slices.Contains(strings.Split(by, "+"), bit) && !c.Never() {
				all = append(all, c.Name)
			}
		}
	}
	return all
}

func rulesOf(name string, asJSON bool) int {
	c := lookUp(name)
	if c == nil {
		return cli.Fail("rules", cli.ExitWrong, fmt.Sprintf("there is no rule named %q%s; seedwalk rules lists all names",
			name, cli.DidYouMean(name, ruleNames())))
	}
	if asJSON {
		return cli.PrintJSON("rules", c, "  ")
	}
	c.print(cli.Stdout)
	return cli.ExitOK
}

// ruleNames returns every name that seedwalk rules knows.
func ruleNames() (all []string) {
	l := listed()
	return slices.Concat(l.Info, l.Callbacks, l.Bits, l.Results, l.Rules, l.Checks, l.Topics)
}
