using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using Covey.Api;
using Covey.Client;
using Covey.Models;
using Newtonsoft.Json;

/// <summary>
/// Drives a running service through the whole path with the client that openapi-generator generates.
/// Arguments: the address of the service, the file of examples, the file of a raw message.
/// </summary>
public static class Drive
{
    private const string Name = "by-csharp";
    private static DatasetsApi datasets;
    private static TrainingJobsApi trainings;
    private static ModelsApi models;
    private static RoutersApi routers;
    private static DecisionsApi decisions;

    private static void Expect(object expected, object actual)
    {
        if (!expected.Equals(actual))
        {
            throw new Exception("expected " + expected + ", got " + actual);
        }
    }

    private static Problem ExpectProblem(int status, string code, Action call)
    {
        try
        {
            call();
        }
        catch (ApiException error)
        {
            Problem problem = JsonConvert.DeserializeObject<Problem>((string)error.ErrorContent);
            Expect(status, error.ErrorCode);
            Expect(code, problem.Code);
            return problem;
        }
        throw new Exception("no problem, but " + status + " was expected");
    }

    private static TrainingJobCreate Training(string dataset, int rounds)
    {
        return new TrainingJobCreate(
            model: Name,
            datasetId: dataset,
            learner: new LearnerConfig(new MPBoostParameters(rounds, algorithm: MPBoostParameters.AlgorithmEnum.MpBoost)),
            decision: new DecisionRule(new AtLeastOneDecision(AtLeastOneDecision.KindEnum.AtLeastOne)),
            promote: new TrainingJobCreatePromote(PromotionRule.Never));
    }

    private static string Upload(string examples)
    {
        string id = datasets.DatasetsCreate(new DatasetCreate(Name)).Id;
        ExpectProblem(409, "dataset_not_ready", () => trainings.TrainingJobsCreate(Training(id, 8)));
        using (FileStream content = File.OpenRead(examples))
        {
            datasets.DatasetsUploadContent(id, new FileParameter(content));
        }
        while (true)
        {
            Dataset dataset = datasets.DatasetsGet(id);
            if (dataset.State != DatasetState.Ingesting)
            {
                Expect(DatasetState.Ready, dataset.State);
                Expect(80L, Convert.ToInt64(dataset.NExamples));
                return id;
            }
            Thread.Sleep(50);
        }
    }

    /// <summary>Reads the events until the training ends.</summary>
    private static List<JobEvent> Follow(string job)
    {
        string[] ends = { "succeeded", "failed", "cancelled" };
        while (true)
        {
            List<JobEvent> items = trainings.TrainingJobsListEvents(job, 500).Items;
            if (ends.Contains(items.Last().Type))
            {
                return items;
            }
            Thread.Sleep(50);
        }
    }

    private static int Train(string dataset)
    {
        Problem problem = ExpectProblem(422, "invalid_request", () => trainings.TrainingJobsCreate(Training(dataset, 0)));
        Expect("/learner/rounds", problem.Errors[0].Pointer);
        string job = trainings.TrainingJobsCreate(Training(dataset, 8), Name).Id;
        Expect("queued", Follow(job)[0].Type);
        TrainingJob ended = trainings.TrainingJobsGet(job);
        Expect(JobState.Succeeded, ended.State);
        return (int)ended.Result.VarVersion;
    }

    private static void Promote(int version)
    {
        AliasPut body = new AliasPut(version);
        ApiResponse<Alias> moved = models.ModelsPutAliasWithHttpInfo(Name, "live", body);
        ExpectProblem(412, "precondition_failed", () => models.ModelsPutAlias(Name, "live", body, "\"stale\""));
        models.ModelsPutAlias(Name, "live", body, moved.Headers["ETag"][0]);
    }

    private static void Route(string message)
    {
        Dictionary<string, string> destinations = new Dictionary<string, string> { { "shipping", "ship@example.org" } };
        routers.RoutersPut(Name, new RouterPut(Name, destinations: destinations, fallback: "front@example.org"));
        using (FileStream content = File.OpenRead(message))
        {
            Decision decision = routers.RoutersRouteMessage(Name, new FileParameter(content));
            Expect(Disposition.Routed, decision.Disposition);
            Expect("ship@example.org", decision.Destinations.Single());
            Expect("Late parcel", decision.Message.Subject);
            decisions.DecisionsGiveFeedback(decision.DecisionId, new Feedback(new List<string> { "billing" }));
            Expect("billing", decisions.DecisionsGet(decision.DecisionId).Feedback.Single());
        }
    }

    public static void Main(string[] arguments)
    {
        Configuration configuration = new Configuration { BasePath = arguments[0] };
        datasets = new DatasetsApi(configuration);
        trainings = new TrainingJobsApi(configuration);
        models = new ModelsApi(configuration);
        routers = new RoutersApi(configuration);
        decisions = new DecisionsApi(configuration);
        ExpectProblem(404, "not_found", () => datasets.DatasetsGet("ds_nope"));
        string dataset = Upload(arguments[1]);
        Promote(Train(dataset));
        Route(arguments[2]);
        routers.RoutersDelete(Name);
        models.ModelsDelete(Name);
        datasets.DatasetsDelete(dataset);
        Console.WriteLine("the whole path works");
    }
}
