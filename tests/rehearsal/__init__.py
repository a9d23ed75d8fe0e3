"""A rehearsal of the CUDA lane: the real commands and the real `CudaDevice`, on no GPU.

With `REHEARSAL` in the environment, a folder, and `site/` on `PYTHONPATH`, every Python process
starts on a machine with two cards: `site/sitecustomize.py` puts in the place of

- the CUDA driver and NVIDIA's management library: `driver.py`;
- `torch.cuda`: the simulated accelerator, on which every tensor has values: `card.py`;
- the clock: the time that the simulation's work takes by its roofline: `clock.py`;
- what Kineto writes of a device: the simulation's own record: `kineto.py`;
- the installer of a comparison's environments: `installer.py`.

Nothing else is replaced, but numbers of steps and samples (`brief.py`): the rehearsal is no
measurement, and has minutes. The cards' processes are files in the folder (`machine.py`).
"""
