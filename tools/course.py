"""Code that train.py, match.py and finish.py share: pictures, schedule, running mean and log."""

import copy
import json
import math
import random
import time

import torch

from encoders import FILES, load_encoder
from pictures import list_pictures, load_picture, split_pictures

NOTED = 250  # steps between two lines of the log


def add_options(parser, steps, rate, last_rate, seed):
    parser.add_argument("--images", required=True, help="folder of training pictures")
    parser.add_argument("--encoders", required=True, help="folder of the encoders' .npz files")
    parser.add_argument("--out", required=True, help="the checkpoint; its log is OUT.jsonl")
    parser.add_argument("--minutes", type=float, default=0, help="processor time; the rate follows a schedule over it")
    parser.add_argument("--steps", type=int, default=steps, help="steps of the schedule when --minutes is 0")
    parser.add_argument("--rate", type=float, default=rate)
    parser.add_argument("--last-rate", type=float, default=last_rate)
    parser.add_argument("--seed", type=int, default=seed)


def add_encoder_options(parser, sana):
    parser.add_argument("--start", nargs="+", required=True, help="checkpoints; training starts from their mean")
    parser.add_argument("--use", default="sd15,sana", help="encoders to learn from")
    parser.add_argument("--sana", type=float, default=sana, help="weight of sana relative to sd15")


def encoders_of(options, device):
    """The encoders to learn from, and their weights."""
    encoders = {name: load_encoder(name, "%s/%s" % (options.encoders, FILES[name])).to(
        device, memory_format=torch.channels_last) for name in options.use.split(",")}
    return encoders, {"sd15": 1.0, "sana": options.sana}


def prepared(options):
    """Set the seeds; return the random source, the device and the training pictures."""
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # the answers compared differ by only a hundredth
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(options.seed)
    train, _ = split_pictures(list_pictures(options.images), 20261121)
    pictures = [load_picture("%s/%s" % (options.images, name)) for name in train]
    return random.Random(options.seed), torch.device("cuda" if torch.cuda.is_available() else "cpu"), pictures


def mean_of(names):
    """The mean of the networks of checkpoints, and the checkpoints."""
    parts = [torch.load(name, map_location="cpu") for name in names]
    return {key: sum(part["mean"][key] for part in parts) / len(parts) for key in parts[0]["mean"]}, parts


class Course:
    """Adam with a cosine schedule over steps or processor time, a running mean of the weights, and a log."""

    def __init__(self, net, options, groups=None, clip=1.0, kept=lambda net: net.state_dict(), clock=time.process_time, **figures):
        """groups: parameter groups, each with a scale of the rate; by default all of the net at scale 1. clip: the
        maximum norm of a gradient. kept: the part of a network's state that is saved. clock: the clock of
        --minutes."""
        self.kept, self.clock = kept, clock
        self.net, self.mean, self.options, self.clip = net, copy.deepcopy(net), options, clip
        self.optimiser = torch.optim.Adam(groups or [dict(params=net.parameters(), scale=1)], lr=options.rate, betas=(0.9, 0.99))
        self.log = open(options.out + ".jsonl", "a")
        self.began, self.step, self.rate = clock(), 0, options.rate
        self.note(event="start", options=vars(options), **figures)

    def note(self, **figures):
        self.log.write(json.dumps(figures) + "\n")
        self.log.flush()

    def goes_on(self):
        """Set the rate of the next step; return False after the last step."""
        options, seconds = self.options, self.clock() - self.began
        if self.step > 0 and (seconds >= options.minutes * 60 if options.minutes else self.step >= options.steps):
            return False
        done = seconds / 60 / options.minutes if options.minutes else (self.step + 1) / options.steps
        self.rate = options.last_rate + (options.rate - options.last_rate) * 0.5 * (1 + math.cos(math.pi * min(1, done)))
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * group["scale"] * min(1, (self.step + 1) / 50)
        return True

    def learn(self, loss):
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.clip)
        self.optimiser.step()
        with torch.no_grad():
            for slow, fast in zip(self.mean.parameters(), self.net.parameters()):
                slow.lerp_(fast, 1 - min(0.995, (self.step + 1) / (self.step + 10)))
        self.step += 1

    def is_noted(self):
        return self.step % NOTED == 0

    def note_step(self, **figures):
        self.note(event="step", step=self.step, seconds=round(self.clock() - self.began, 1),
                  rate=round(self.rate, 6), **figures)

    def save(self, **more):
        here = {name: {key: value.cpu() for key, value in self.kept(net).items()} for name, net in (("net", self.net), ("mean", self.mean))}
        torch.save({**here, "step": self.step, **more}, self.options.out)
