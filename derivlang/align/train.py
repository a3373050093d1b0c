from __future__ import annotations
import numpy as np
from dataclasses import dataclass
from derivlang.align.table import build
from derivlang.align.jumps import uniform, JumpCounts
from derivlang.align.diagonal import Diagonal, distance
from derivlang.align.hmm import posterior

@dataclass
class Cfg:
    kappa: float = 2.0     # pseudo count a source type, spread over the base
    kappa0: float = 2.0
    null: float = 0.2
    ibm1: int = 4
    ibm2: int = 0
    hmm: int = 20
    agree_from: int = 100
    agree_how: str = 'product'
    sim: float = 0.0
    jump_prior: float = 0.5
    power: float = 1.0
    noise: float=0.0
    seed: int=0
    loo: bool=True

class Side:
    """one direction: from -> to, given its own orientation of blocks"""

def train(bitext, cfg, log=None, sims=None):
    T = build(bitext)
    E = len(T)
    f4 = np.float32
    ns, nt = T.n_source, T.n_target
    # direction 0: target words given source; direction 1: source given target
    given = (T.source_of, T.target_of)
    made = (T.target_of, T.source_of)
    n_given = (ns, nt); n_made = (nt, ns)
    freq = [np.bincount(bitext.target, minlength=nt), np.bincount(bitext.source, minlength=ns)]
    base = []
    for d in range(2):
        b = np.full(E, 1.0 / n_made[d])
        kap = cfg.kappa
        if sims is not None and cfg.sim:
            b = b * kap + cfg.sim * sims(T)
        else: b = b * kap
        b[-1] = 0
        base.append(b)
    N = [b.copy() for b in base]
    tot = [np.bincount(given[d], base[d], n_given[d] + 1) * 0 + cfg.kappa + (0 if not cfg.sim or sims is None else cfg.sim*np.bincount(given[d], sims(T), n_given[d]+1)) for d in range(2)]
    base_tot = [t.copy() for t in tot]
    N0 = [np.append(cfg.kappa0 * np.full(n_made[d], 1/n_made[d]), 0) for d in range(2)]
    base0 = [x.copy() for x in N0]
    tot0 = [cfg.kappa0]*2
    own = [[None]*len(T.blocks) for _ in range(2)]
    own0 = [[None]*len(T.blocks) for _ in range(2)]
    jumps = [uniform(cfg.null) for _ in range(2)]
    diag = [Diagonal(0.0, False, cfg.null) for _ in range(2)]
    total = cfg.ibm1 + cfg.ibm2 + cfg.hmm
    first = True
    rng=np.random.default_rng(cfg.seed)
    for it in range(total):
        kind = 'ibm1' if it < cfg.ibm1 else 'ibm2' if it < cfg.ibm1+cfg.ibm2 else 'hmm'
        newN = [b.copy() for b in base]
        newtot = [t.copy() for t in base_tot]
        newN0 = [b.copy() for b in base0]
        ll = [0.0, 0.0]
        jc = [JumpCounts(), JumpCounts()]
        last = it == total - 1
        out = []
        dstat = np.zeros((2, 4))
        for k, B in enumerate(T.blocks):
            gam = []
            gam0 = []
            for d in range(2):
                if d == 0:
                    cells = B.cells; g = B.source; m = B.target; gl = B.source_lengths; ml = B.target_lengths
                else:
                    cells = np.ascontiguousarray(B.cells.transpose(2, 1, 0)); g = B.target; m = B.source; gl = B.target_lengths; ml = B.source_lengths
                ot = own[d][k]
                if first:
                    em = np.ones(cells.shape, f4); em *= (cells != E-1)
                    if cfg.noise: em *= rng.gamma(1/cfg.noise, cfg.noise, em.shape)
                    nl = np.ones((cells.shape[0], cells.shape[1]), f4)
                    em /= n_made[d]; nl /= n_made[d]
                else:
                    num = N[d][cells].astype(f4)
                    den = np.broadcast_to(tot[d][g].astype(f4)[None], cells.shape)
                    if cfg.loo:
                        em = np.maximum(num - ot, 1e-9) / np.maximum(den - ot, 1e-9)
                    else: em = num/den
                    em *= (cells != E-1)
                    o0 = own0[d][k] if cfg.loo else 0
                    nl = ((np.maximum(N0[d][m].T - o0, 1e-9)) / (tot0[d] - o0)).astype(f4)
                if cfg.power != 1: em = em ** f4(cfg.power); nl = nl ** f4(cfg.power)
                if kind == 'hmm':
                    P = posterior(em, nl, gl, ml, jumps[d], jc[d])
                    q = P.links; ll[d] += P.log_likelihood.sum()
                else:
                    pr = diag[d].prior(cells.shape[0], cells.shape[2], gl, ml, f4)
                    q = em * pr
                    s = q.sum(2) + cfg.null * nl
                    q /= s[:, :, None]
                    q[np.arange(cells.shape[0])[:, None] >= ml] = 0
                gam.append(q)
            if it >= cfg.agree_from:
                pr = gam[0] * gam[1].transpose(2, 1, 0)
                if cfg.agree_how == 'sqrt': pr = np.sqrt(pr)
                if cfg.agree_how == 'mean': pr = (gam[0]+gam[1].transpose(2,1,0))/2
                gam = [pr, np.ascontiguousarray(pr.transpose(2, 1, 0))]
            for d in range(2):
                cells = B.cells if d == 0 else np.ascontiguousarray(B.cells.transpose(2, 1, 0))
                g, m = (B.source, B.target) if d == 0 else (B.target, B.source)
                q = gam[d]
                own[d][k] = q
                np.add.at(newN[d], cells.ravel(), q.ravel())
                np.add.at(newtot[d], g.ravel(), q.sum(0).ravel())
                q0 = np.maximum(1 - q.sum(2), 0)
                q0[m.T == n_made[d]] = 0
                own0[d][k] = q0
                np.add.at(newN0[d], m.T.ravel(), q0.ravel())
        N, tot, N0 = newN, newtot, newN0
        for d in range(2):
            N[d][-1] = 0
        tot0 = [x.sum() for x in N0]
        first = False
        if kind == 'hmm':
            jumps = [jc[d].fit(jumps[d], cfg.jump_prior) for d in range(2)]
        if log: log(it, kind, ll, T, own)
    return T, own, jumps
