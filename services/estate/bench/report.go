package bench

import (
	"fmt"
	"strings"
)

// Report is what a run found. String gives it as Markdown.
type Report struct {
	options Options
	machine machine

	small, large, paced results
	pace                float64 // requests per second of paced
	idle                map[string]values
	decisions           []decision
}

// names are the contenders in the order of the tables.
var names = []string{nameGateway, nameWithout, nameNginx, nameHAProxy}

// String returns the report as Markdown tables: medians of the rounds, with the
// range of all in brackets.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.machine)
	fmt.Fprintf(&b, "%d rounds in turn, %d s each; small answers of %d bytes over %d connections, answers of 1 MiB over %d; "+
		"medians, with the range of the rounds.\n\n",
		r.options.Rounds, r.options.Seconds, len(answerOf("OLD")), r.options.Connections, largeConnections)
	r.goals(&b)
	b.WriteString("\n")
	r.contenders(&b)
	return b.String()
}

// Better returns the peer with the lower processor time per request.
func (r *Report) better() string {
	if r.small[nameHAProxy].cpu.median() < r.small[nameNginx].cpu.median() {
		return nameHAProxy
	}
	return nameNginx
}

// faster returns the peer with more requests per second.
func (r *Report) faster() string {
	if r.small[nameHAProxy].rate.median() > r.small[nameNginx].rate.median() {
		return nameHAProxy
	}
	return nameNginx
}

// Ratio is the processor time of a request in the gateway to that in the better
// peer.
func (r *Report) Ratio() float64 {
	return r.small[nameGateway].cpu.median() / r.small[r.better()].cpu.median()
}

// goals is the table of what design and documentation promise.
func (r *Report) goals(b *strings.Builder) {
	gateway, nginx := r.small[nameGateway], r.large[nameNginx]
	b.WriteString("| what | goal | measured |\n| --- | --- | --- |\n")
	row := func(what, goal string, measured any) { fmt.Fprintf(b, "| %s | %s | %s |\n", what, goal, measured) }
	row("processor time per request, to "+r.better(), "≤ 1.0", ratioOf(gateway.cpu, r.small[r.better()].cpu))
	row("requests per second, to "+r.faster(), "≥ 0.9", ratioOf(gateway.rate, r.small[r.faster()].rate))
	row("processor time per request of `loop: false`, to the gateway with it", "≥ 2", ratioOf(r.small[nameWithout].cpu, gateway.cpu))
	row(fmt.Sprintf("p99 at %.0f requests per second, half of nginx's most, to nginx", r.pace), "≤ 1.0",
		ratioOf(r.paced[nameGateway].p99, r.paced[nameNginx].p99))
	row("throughput of answers of 1 MiB, to nginx", "≥ 0.9", ratioOf(r.large[nameGateway].rate, nginx.rate))
	row("memory per idle connection", "≤ 16 KiB", r.idle[nameGateway].format("%.1f")+" KiB")
	for _, d := range r.decisions {
		row(fmt.Sprintf("deciding by one of %d records, to one of %d", d.records, r.decisions[0].records), "≤ 1.1",
			fmt.Sprintf("%.2f, %s ns", d.times.median()/r.decisions[0].times.median(), d.times.format("%.1f")))
	}
}

// contenders is the table of what each one gave.
func (r *Report) contenders(b *strings.Builder) {
	b.WriteString("| | processor time per request, µs | requests/s | p99 at full load, ms | p99 at half of nginx's rate, ms |" +
		" 1 MiB answers/s | processor time per 1 MiB, µs | KiB per idle connection |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, name := range names {
		small, large := r.small[name], r.large[name]
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", name,
			small.cpu.format("%.1f"), small.rate.format("%.0f"), small.p99.format("%.2f"),
			r.paced[name].p99.format("%.2f"), large.rate.format("%.0f"), large.cpu.format("%.0f"), r.idle[name].format("%.1f"))
	}
}
