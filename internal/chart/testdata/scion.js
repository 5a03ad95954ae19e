// Reads one chart with its events per line and prints the configurations after the start and after each event.
const scion = require(process.argv[2] + '/node_modules/scion-core');
const lines = require('readline').createInterface({input: process.stdin});
lines.on('line', line => {
	const {model, events} = JSON.parse(line);
	const chart = new scion.Statechart(model);
	const all = [chart.start()];
	for (const name of events) all.push(chart.gen({name}));
	console.log(JSON.stringify(all.map(c => [...c].sort())));
});
