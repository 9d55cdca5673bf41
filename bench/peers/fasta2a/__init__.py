"""The peer fasta2a: `python -m bench.peers.fasta2a.echo`."""
